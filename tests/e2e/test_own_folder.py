"""Folders of commands that a person starts."""

import os
import subprocess
import sys
import tempfile

import pytest

from tests.e2e.own_folder import own_folder, sweep_stale

PREFIX = "topolab-thing-"


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def dead() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        return ended.pid


def test_it_names_its_process_and_is_gone_afterwards():
    with own_folder(PREFIX) as folder:
        (folder / "a").write_text("b")
        assert folder.name.startswith(f"{PREFIX}{os.getpid()}-")
    assert not folder.exists()


def test_what_a_killed_one_left_goes_and_what_a_living_one_has_stays(tmp_path):
    left, living, another = (tmp_path / name for name in (
        f"{PREFIX}{dead()}-a", f"{PREFIX}{os.getpid()}-a", f"topolab-other-{dead()}-a",
    ))  # fmt: skip
    for folder in (left, living, another):
        (folder / "inside").mkdir(parents=True)
    with own_folder(PREFIX) as own:
        assert sorted(tmp_path.iterdir()) == sorted([living, another, own])


def test_the_first_process_of_the_machine_lives_whoever_asks(tmp_path):
    (tmp_path / f"{PREFIX}1-a").mkdir()
    assert sweep_stale(PREFIX) == []
