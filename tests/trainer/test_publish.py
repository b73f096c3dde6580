"""Records leave the pod whole, or the files stay and the sentence says where."""

from pathlib import Path

import pytest

from trainer import publish
from trainer.distributed import Place, read_place
from trainer.publish import PublishError


def _place(folder: Path, **changes: str) -> Place:
    return read_place(
        {
            "RANK": "1",
            "WORLD_SIZE": "2",
            "LOCAL_RANK": "1",
            "LOCAL_WORLD_SIZE": "2",
            "GROUP_RANK": "0",
            "TOPOLAB_RECORDS": f"file:{folder}/records",
        }
        | changes
    )


def test_files_arrive_under_the_run_s_folder_without_being_written_here(tmp_path: Path) -> None:
    run = tmp_path / "run-1"
    publish.publish(run, f"file:{tmp_path}/records", {publish.steps_file(run, 1): "line é\n"})
    assert (tmp_path / "records/run-1/steps/rank-00001.jsonl").read_text() == "line é\n"
    assert not run.exists()


def test_a_rank_publishes_its_own_files_alone(tmp_path: Path) -> None:
    texts = publish.own_texts(_place(tmp_path), tmp_path, "line\n")
    assert [file.relative_to(tmp_path).as_posix() for file in texts] == [
        "steps/rank-00001.jsonl",
        "logs/rank-00001.log",
    ]
    assert texts[publish.steps_file(tmp_path, 1)] == "line\n"


def test_a_run_never_writes_into_an_existing_folder(tmp_path: Path) -> None:
    (tmp_path / "run-1").mkdir()
    with pytest.raises(ValueError, match="run-1: exists already; a run never writes into another's folder"):
        publish.refuse_existing(f"file:{tmp_path}", "run-1")
    publish.refuse_existing(f"file:{tmp_path}", "run-2")


def test_records_that_can_t_be_reached_are_told_before_the_run() -> None:
    with pytest.raises(ValueError, match=r"records nowhere://x: can't be reached: Protocol not known: nowhere"):
        publish.refuse_existing("nowhere://x", "run-1")


def test_a_failed_publish_says_why(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("no folder")
    with pytest.raises(PublishError, match=r"records file:.*/records/run-1: can't be published: "):
        publish.publish(tmp_path / "run-1", f"file:{tmp_path}/records", {tmp_path / "run-1/record.json": "{}"})


def test_a_full_disk_is_told_by_the_file_that_can_t_be_kept(tmp_path: Path) -> None:
    (tmp_path / "record.json").symlink_to("/dev/full")
    with pytest.raises(PublishError, match=r"record.json: can't be kept: No space left on device"):
        publish.keep({tmp_path / "record.json": "{}"})


def test_both_streams_and_nccl_s_log_are_collected(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "stdout.log").write_text("said\n")
    (logs / "stderr.log").write_bytes(b"warned \xff\n")
    place = _place(tmp_path, TORCHELASTIC_ERROR_FILE=f"{logs}/error.json", NCCL_DEBUG_FILE=f"{tmp_path}/nccl.log")
    (tmp_path / "nccl.log").write_text("NCCL INFO\n")
    texts = publish.own_texts(place, tmp_path, "")
    assert texts[publish.log_file(tmp_path, 1)] == "==> stdout.log <==\nsaid\n==> stderr.log <==\nwarned \ufffd\n"
    assert texts[publish.nccl_file(tmp_path, 1)] == "NCCL INFO\n"


def test_an_uncaptured_output_says_so(tmp_path: Path) -> None:
    texts = publish.own_texts(_place(tmp_path), tmp_path, "")
    assert texts[publish.log_file(tmp_path, 1)].startswith("not captured: start torchrun with --log-dir")
    assert publish.nccl_file(tmp_path, 1) not in texts
