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


def test_files_arrive_under_the_run_s_folder(tmp_path: Path) -> None:
    run = tmp_path / "run-1"
    publish.steps_file(run, 1).parent.mkdir(parents=True)
    publish.steps_file(run, 1).write_text("line\n")
    publish.publish(run, f"file:{tmp_path}/records", publish.own_files(run, 1))
    assert (tmp_path / "records/run-1/steps/rank-00001.jsonl").read_text() == "line\n"


def test_a_rank_publishes_its_own_files_alone(tmp_path: Path) -> None:
    for rank in (0, 1):
        for file in (publish.steps_file(tmp_path, rank), publish.log_file(tmp_path, rank)):
            file.parent.mkdir(exist_ok=True)
            file.write_text("")
    (tmp_path / "topology.txt").write_text("")
    assert [f.name for f in publish.own_files(tmp_path, 0)] == ["rank-00000.jsonl", "rank-00000.log", "topology.txt"]
    assert [f.name for f in publish.own_files(tmp_path, 1)] == ["rank-00001.jsonl", "rank-00001.log"]


def test_a_run_never_writes_into_an_existing_folder(tmp_path: Path) -> None:
    (tmp_path / "run-1").mkdir()
    with pytest.raises(ValueError, match="run-1: exists already; a run never writes into another's folder"):
        publish.refuse_existing(f"file:{tmp_path}", "run-1")
    publish.refuse_existing(f"file:{tmp_path}", "run-2")


def test_records_that_can_t_be_reached_are_told_before_the_run() -> None:
    with pytest.raises(ValueError, match=r"records nowhere://x: can't be reached: Protocol not known: nowhere"):
        publish.refuse_existing("nowhere://x", "run-1")


def test_a_failed_publish_says_where_the_files_are(tmp_path: Path) -> None:
    run = tmp_path / "run-1"
    run.mkdir()
    (run / "record.json").write_text("{}")
    (tmp_path / "records").write_text("no folder")
    with pytest.raises(PublishError, match=rf"can't be published: .*; the files are still in {run}"):
        publish.publish(run, f"file:{tmp_path}/records", [run / "record.json"])
    assert (run / "record.json").exists()


def test_both_streams_and_nccl_s_log_are_collected(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "stdout.log").write_text("said\n")
    (logs / "stderr.log").write_bytes(b"warned \xff\n")
    place = _place(tmp_path, TORCHELASTIC_ERROR_FILE=f"{logs}/error.json", NCCL_DEBUG_FILE=f"{tmp_path}/nccl.log")
    (tmp_path / "nccl.log").write_text("NCCL INFO\n")
    publish.collect_logs(place, tmp_path / "run")
    text = publish.log_file(tmp_path / "run", 1).read_text()
    assert text == "==> stdout.log <==\nsaid\n==> stderr.log <==\nwarned \ufffd\n"
    assert publish.nccl_file(tmp_path / "run", 1).read_text() == "NCCL INFO\n"


def test_an_uncaptured_output_says_so(tmp_path: Path) -> None:
    publish.collect_logs(_place(tmp_path), tmp_path / "run")
    assert publish.log_file(tmp_path / "run", 1).read_text().startswith("not captured: start torchrun with --log-dir")
    assert not publish.nccl_file(tmp_path / "run", 1).exists()
