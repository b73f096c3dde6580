"""`make image`, with builders that are scripts: they keep what they were asked and answer as the real ones."""

import re
import shutil
from pathlib import Path

import pytest

from tests.source import ROOT
from tools import image
from workloads.catalogue.versions import STOCK_IMAGE
from workloads.planning.spec import Platform

REGISTRY = "registry.example:5000/team/trainer"
DIGEST = f"sha256:{'a' * 64}"
DOCKER = f"""
case $1 in
  build) ls -R . > $LOG.context ;;
  inspect) echo "other.example/trainer@sha256:{"b" * 64}"; echo "{REGISTRY}@{DIGEST}" ;;
esac
"""
PODMAN = f'[ "$1" = push ] && printf %s {DIGEST} > "$3"\ntrue'


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A PATH with the shell's own programs and no builder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    found = shutil.which
    # Of builders only those that a test puts there.
    monkeypatch.setattr(shutil, "which", lambda name: found(name, path=str(folder)))
    return folder


def builder(folder: Path, name: str, does: str) -> None:
    (folder / name).write_text(f'#!/bin/sh\necho "$@" >> "$LOG"\n{does}\n')
    (folder / name).chmod(0o755)


def asked(path: Path) -> list[str]:
    return (path.parent / "log").read_text().splitlines()


@pytest.mark.parametrize(("name", "does"), [("docker", DOCKER), ("podman", PODMAN), ("buildah", PODMAN)])
def test_it_is_built_pushed_and_told_by_digest_as_a_stack_file_takes_it(path, capsys, name, does):
    builder(path, name, does)
    assert image.main(["--registry", REGISTRY]) == 0
    printed = capsys.readouterr().out
    assert f"image: {REGISTRY}@{DIGEST}" in printed
    assert Platform.model_validate_json(f'{{"image": "{REGISTRY}@{DIGEST}"}}').image == f"{REGISTRY}@{DIGEST}"
    built, pushed = asked(path)[:2]
    assert re.fullmatch(rf"build --file trainer/Dockerfile --build-arg BASE={STOCK_IMAGE} --tag \S+ \.", built)
    assert pushed.startswith("push")


def test_the_builder_gets_the_sources_and_nothing_else(path):
    builder(path, "docker", DOCKER)
    assert image.main(["--registry", REGISTRY]) == 0
    context = (path.parent / "log.context").read_text().split()
    assert {"Dockerfile", "requirements.lock", "loop.py"} <= set(context)
    assert not {".venv", "infra", "requirements.txt"} & set(context)
    copied = re.findall(r"^COPY (\S+) ", (ROOT / image.DOCKERFILE).read_text(), re.MULTILINE)
    assert all(list(ROOT.glob(one)) for one in copied)
    assert {str(p.relative_to(ROOT)) for one in copied for p in ROOT.glob(one)} <= image.sources(ROOT).keys()


def test_a_base_by_digest_is_handed_on(path):
    builder(path, "docker", DOCKER)
    assert image.main(["--registry", REGISTRY, "--base", f"{STOCK_IMAGE}@{DIGEST}"]) == 0
    assert f"BASE={STOCK_IMAGE}@{DIGEST}" in asked(path)[0]


def test_the_same_sources_are_the_same_tag_and_others_another():
    files = {"trainer/a.py": b"1"}
    assert image.tag(files, "base") == image.tag(dict(files), "base")
    others = [
        image.tag({"trainer/a.py": b"2"}, "base"),
        image.tag({"trainer/b.py": b"1"}, "base"),
        image.tag(files, "x"),
    ]
    assert len({image.tag(files, "base"), *others}) == 4


@pytest.mark.parametrize(
    ("registry", "name", "does", "sentence"),
    [
        (REGISTRY, None, "", "none of docker, podman, buildah is on PATH"),
        ("", "docker", DOCKER, "REGISTRY is ''; name the repository"),
        ("trainer", "docker", DOCKER, "REGISTRY is 'trainer'; name the repository"),
        (REGISTRY, "docker", '[ "$1" != build ]', "building registry.example:5000/team/trainer:"),
        (REGISTRY, "docker", '[ "$1" != push ]', "log in to registry.example:5000"),
        (REGISTRY, "docker", "true", "is pushed, but the builder tells no digest"),
        (REGISTRY, "podman", "true", "is pushed, but the builder tells no digest"),
    ],
)
def test_what_cannot_be_is_one_sentence(path, capsys, registry, name, does, sentence):
    if name is not None:
        builder(path, name, does)
    assert image.main(["--registry", registry]) == 1
    told = capsys.readouterr().err
    assert told.startswith("image: ")
    assert sentence in told


def test_the_dockerfiles_base_is_the_image_that_the_stock_mode_uses():
    assert image.default_base() == STOCK_IMAGE
