"""Building into the cache: once, whole, and with words when it fails. Go is a script here."""

import threading
from pathlib import Path

import pytest

from tests.e2e.tools.build import build, make
from tests.e2e.tools.go import Go, ToolsError
from tests.e2e.tools.groups import GROUPS, HELM, PULUMI

WRITES_ITS_TARGET = 'while [ "$1" != -o ]; do shift; done; echo built > "$2"'
VERSION = "go1.26.8 linux/amd64"


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def go(folder: Path, text: str = WRITES_ITS_TARGET) -> Go:
    """A toolchain that notes each call."""
    return Go(path=script(folder / "go", f'echo "$*" >> {folder}/calls\n{text}'), version=VERSION)


def calls(folder: Path) -> int:
    log = folder / "calls"
    return len(log.read_text().splitlines()) if log.exists() else 0


def hidden(kept: Path) -> list[str]:
    return [path.name for path in kept.iterdir() if path.name.startswith(".")]


def test_every_binary_is_in_one_folder_and_nothing_is_built_twice(tmp_path):
    said: list[str] = []
    kept, toolchain = tmp_path / "kept", go(tmp_path)
    folder = make(toolchain, kept, GROUPS, say=said.append, pulumi=None)
    names = {binary for group in GROUPS for binary in group.binaries}
    assert {path.name for path in folder.iterdir()} == names
    assert all((folder / name).read_text() == "built\n" for name in names)
    assert hidden(kept) == []
    assert f"kubebox {GROUPS[0].version}: building" in said
    assert len(said) == 2 * len(names)
    again = make(toolchain, kept, GROUPS, say=said.append, pulumi=None)
    assert (again, calls(tmp_path), len(said)) == (folder, len(names), 2 * len(names))


def test_a_failed_build_shows_the_end_of_its_output_and_leaves_no_half(tmp_path):
    kept = tmp_path / "kept"
    broken = go(tmp_path, "for n in $(seq 60); do echo line $n.; done; exit 3")
    with pytest.raises(ToolsError, match=r"go build ended with 3\)(.|\n)*line 60\.$") as caught:
        build(broken, kept, HELM, say=lambda _: None)
    assert "line 1." not in str(caught.value)
    home = build(go(tmp_path), kept, HELM, say=lambda _: None)
    assert [path.name for path in home.iterdir()] == ["helm"]
    assert hidden(kept) == []


def test_a_build_that_makes_nothing_is_a_failed_build(tmp_path):
    with pytest.raises(ToolsError, match=r"helm .* can't be built"):
        build(go(tmp_path, "exit 0"), tmp_path / "kept", HELM, say=lambda _: None)


def test_the_second_of_two_builders_waits_and_takes_what_the_first_made(tmp_path):
    kept, waits = tmp_path / "kept", tmp_path / "waits"
    # The first build ends only once the second one has met the lock.
    slow = go(tmp_path, f"until [ -e {waits} ]; do sleep 0.01; done\n{WRITES_ITS_TARGET}")
    homes: list[Path] = []

    def one() -> None:
        homes.append(build(slow, kept, HELM, say=lambda line: waits.touch() if "waiting" in line else None))

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert len(homes) == 2
    assert len(set(homes)) == 1
    assert calls(tmp_path) == 1


def test_other_inputs_get_a_folder_of_their_own(tmp_path):
    kept, toolchain = tmp_path / "kept", go(tmp_path)
    newer = Go(path=toolchain.path, version="go1.27.0 linux/amd64")
    homes = {build(one, kept, HELM, say=lambda _: None) for one in (toolchain, newer)}
    assert len(homes) == 2


def test_the_checkout_is_never_written(tmp_path):
    build(go(tmp_path), tmp_path / "kept", HELM, say=lambda _: None)
    assert "-mod=readonly" in (tmp_path / "calls").read_text()


def test_a_pulumi_of_the_pinned_version_on_path_is_used(tmp_path):
    own = script(tmp_path / "bin" / "pulumi", f"echo {PULUMI.version}")
    folder = make(go(tmp_path), tmp_path / "kept", [HELM, PULUMI], say=lambda _: None, pulumi=own)
    assert (folder / "pulumi").resolve() == own
    assert calls(tmp_path) == 1


@pytest.mark.parametrize(
    ("answer", "named"),
    [("echo v3.100.0", "v3.100.0"), (f"echo {PULUMI.version}-dev", f"{PULUMI.version}-dev"), ("exit 1", "no Pulumi")],
)
def test_another_pulumi_on_path_is_named_and_one_of_our_own_is_built(tmp_path, answer, named):
    said: list[str] = []
    own = script(tmp_path / "bin" / "pulumi", answer)
    folder = make(go(tmp_path), tmp_path / "kept", [PULUMI], say=said.append, pulumi=own)
    assert (folder / "pulumi").read_text() == "built\n"
    assert said[0] == f"pulumi: {own} is {named}, not {PULUMI.version}; taking one of our own"
