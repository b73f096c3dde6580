"""Environments are made once, over whatever Python there is."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import set_up, uv
from tools.set_up import Environment, installed, main, make


@pytest.fixture
def middle(tmp_path: Path) -> str:
    """An interpreter in a virtual environment that has a torch, and `app` at 2.0."""
    folder = tmp_path / "middle"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    for name, version in (("torch", "2.11.0+cu130"), ("app", "2.0")):
        (packages / f"{name}.py").write_text(f"version = {version!r}\n")
        (packages / f"{name}-{version}.dist-info").mkdir()
        metadata = packages / f"{name}-{version}.dist-info" / "METADATA"
        metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return python


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    (tmp_path / "requirements.txt").write_text("torch>=2.8,<3\napp>=2,<3\n")
    (tmp_path / "requirements.lock").write_text("app==2.1 \\\n    --hash=sha256:aa\n    # via -r requirements.txt\n")
    return Environment(
        folder=tmp_path / ".venv-lab",
        requirements=tmp_path / "requirements.txt",
        lock=tmp_path / "requirements.lock",
        needs_torch=True,
    )


@pytest.fixture
def no_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without network: whoever needs uv fails."""

    def refuse(python: str) -> str:
        raise ValueError(f"uv was asked for ({python})")

    monkeypatch.setattr(set_up, "find_uv", refuse)


@pytest.mark.usefixtures("no_uv")
def test_an_interpreter_that_has_all_is_stood_on_without_network(middle, environment):
    make(environment, middle, [])
    seen = subprocess.run(
        [environment.python, "-c", "import torch, app; print(torch.version, app.version)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert seen.stdout.split() == ["2.11.0+cu130", "2.0"]
    assert (environment.folder / "bin" / "torchrun").exists()


@pytest.mark.usefixtures("no_uv")
def test_a_second_call_changes_nothing(middle, environment):
    make(environment, middle, [])
    (environment.folder / "mine").write_text("")
    make(environment, middle, [])
    assert (environment.folder / "mine").exists()


@pytest.mark.usefixtures("no_uv")
def test_another_lock_makes_the_environment_anew(middle, environment):
    make(environment, middle, [])
    (environment.folder / "mine").write_text("")
    environment.lock.write_text(environment.lock.read_text() + "# changed\n")
    make(environment, middle, [])
    assert not (environment.folder / "mine").exists()


@pytest.mark.usefixtures("no_uv")
def test_what_lacks_is_asked_of_the_network(middle, environment):
    environment.requirements.write_text("torch>=2.8,<3\napp>=2.1,<3\n")
    with pytest.raises(ValueError, match="uv was asked for"):
        make(environment, middle, [])
    assert not (environment.folder / set_up.STAMP).exists()


@pytest.mark.usefixtures("no_uv")
def test_a_torch_outside_the_range_is_refused_with_both_versions(middle, environment):
    environment.requirements.write_text("torch>=2.12,<3\napp>=2,<3\n")
    with pytest.raises(ValueError, match=r"doesn't serve: torch 2\.11\.0\+cu130 \(needed: >=2\.12,<3\)"):
        make(environment, middle, [])


@pytest.mark.usefixtures("no_uv")
def test_an_interpreter_without_torch_gets_the_whole_lock(environment):
    assert "torch" not in installed(sys.executable)
    with pytest.raises(ValueError, match="uv was asked for"):
        make(environment, sys.executable, [])


def test_an_interpreter_that_is_not_there_is_named(capsys):
    assert main(["lab", "--python", "/no/such/python"]) == 1
    assert "PYTHON=/no/such/python: no such interpreter" in capsys.readouterr().err


def test_a_python_of_another_version_is_refused_with_the_ones_that_serve(tmp_path, capsys):
    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\necho 3.9\n")
    old.chmod(0o755)
    assert main(["lab", "--python", str(old)]) == 1
    assert "is Python 3.9, and topolab runs on 3.11 and 3.12" in capsys.readouterr().err


def test_something_that_is_no_python_is_refused_with_its_own_last_word(tmp_path, capsys):
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho 'not me' >&2\nexit 3\n")
    other.chmod(0o755)
    assert main(["program", "--python", str(other)]) == 1
    assert "doesn't run (not me)" in capsys.readouterr().err


def test_a_failing_command_says_that_packages_come_from_the_network(capsys, monkeypatch, environment):
    monkeypatch.setitem(set_up.ENVIRONMENTS, "lab", environment)
    monkeypatch.setattr(set_up, "find_uv", lambda _python: "false")
    assert main(["lab"]) == 1
    assert "packages come from the network: is it there?" in capsys.readouterr().err


def test_uv_on_the_path_is_used_when_it_runs(tmp_path, monkeypatch):
    for name, code in (("broken", 1), ("good", 0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "uv").write_text(f"#!/bin/sh\nexit {code}\n")
        (tmp_path / name / "uv").chmod(0o755)
    monkeypatch.setattr(uv, "_PRIVATE", tmp_path / "none")
    monkeypatch.setenv("PATH", f"{tmp_path / 'good'}:/bin:/usr/bin")
    assert uv.find_uv(sys.executable) == str(tmp_path / "good" / "uv")


def test_a_python_without_pip_and_ensurepip_is_told_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(uv, "_PRIVATE", tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(uv, "_runs", lambda _command: False)
    with pytest.raises(ValueError, match="neither pip nor ensurepip"):
        uv.find_uv("python3")


@pytest.mark.usefixtures("no_uv")
def test_development_tools_that_are_there_are_not_fetched(middle, environment):
    make(environment, middle, ["app"])
    with pytest.raises(ValueError, match="uv was asked for"):
        make(environment, middle, ["app", "pytest"])
