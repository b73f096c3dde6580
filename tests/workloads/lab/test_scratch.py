import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from workloads.lab.scratch import remove_leftovers, scratch_folder, start_time


def test_a_scratch_folder_is_gone_at_the_end_whatever_was_left_in_it(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        (folder / "closed").mkdir()
        (folder / "closed" / "file").touch()
        (folder / "closed").chmod(0)
        assert folder.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_killed_lab_is_removed_at_the_next_start_and_that_of_a_living_one_stays(
    tmp_path: Path,
) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path; from workloads.lab.scratch import scratch_folder\n"
        "with scratch_folder(Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
    )
    with scratch_folder(tmp_path) as mine:
        root = Path(__file__).parents[3]
        subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=root, check=False)
        assert len(list(tmp_path.iterdir())) == 2
        with scratch_folder(tmp_path) as next_one:
            assert sorted(tmp_path.iterdir()) == sorted([mine, next_one])


@pytest.mark.parametrize(
    "owner",
    ["1 0", f"{os.getpid()} another start", "no number", ""],
    ids=["process 1", "this process, another start", "no number", "nothing"],
)
def test_an_owner_that_is_another_process_by_now_is_no_owner(tmp_path: Path, owner: str) -> None:
    left = tmp_path / "lab-left"
    left.mkdir()
    (left / "owner").write_text(owner)
    assert remove_leftovers(tmp_path) == (left,)
    assert not left.exists()


def test_a_folder_that_is_just_being_made_is_left_to_its_maker(tmp_path: Path) -> None:
    (tmp_path / f".{os.getpid()}-new").mkdir()
    assert remove_leftovers(tmp_path) == ()


def test_a_process_that_has_ended_has_no_start_time() -> None:
    with subprocess.Popen(["true"]) as child:
        pass
    assert start_time(child.pid) is None
    assert start_time(os.getpid()) == start_time(os.getpid())


def test_a_full_disk_is_told_with_what_is_free_and_what_to_do(tmp_path: Path) -> None:
    sentence = r"MiB are free and a lab needs \d+ MiB; make room or set TMPDIR"
    with pytest.raises(ValueError, match=sentence), scratch_folder(tmp_path, least_free_bytes=1 << 60):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    sentence = r"scratch folder .*file/lab: Not a directory; set TMPDIR"
    with pytest.raises(ValueError, match=sentence), scratch_folder(tmp_path / "file" / "lab"):
        pass


def test_each_user_has_a_folder_of_their_own_below_the_systems(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with scratch_folder() as folder:
        assert folder.parent == tmp_path / f"topolab-{os.getuid()}"
        assert folder.parent.stat().st_mode & 0o777 == 0o700
