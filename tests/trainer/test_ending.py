"""record.json comes last and says `complete` only where every rank's files are published."""

import multiprocessing
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import torch.distributed as dist

from tests.trainer.launching import tiny_config
from trainer import publish
from trainer.checkpoint import StopWish
from trainer.distributed import read_place
from trainer.ending import Ending, conclude, salvage
from trainer.facts import Stopwatch
from trainer.feed import MicroBatch
from trainer.loop import Loop
from trainer.record import DataFacts, RunRecord, Status
from trainer.steps import StepWriter
from trainer.verdict import Start

pytestmark = pytest.mark.torch


def _ending(folder: Path, *, records: Path, rank: int = 0, ranks: int = 1, status: Status = "complete") -> Ending:
    config = tiny_config(ranks_per_pod=ranks, steps=1, warmup_steps=0)
    place = read_place(
        {
            "RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": str(ranks),
            "GROUP_RANK": "0",
            "TOPOLAB_RECORDS": f"file:{records}",
        }
    )
    writer = StepWriter(publish.steps_file(folder, rank))
    writer.fed([MicroBatch(inputs={}, real_tokens=20, padded_tokens=12, targets_of_step=62)], 0.0)
    writer.ended(1, "timed", 6.5, 1.0)
    loop = Loop(config, rank, StopWish(), writer, lambda: True)
    loop.status = status
    return Ending(
        config=config,
        place=place,
        folder=folder,
        started=datetime.now(UTC),
        data=DataFacts(sha256="0", tokenizer_sha256="0", texts=1, tokens=32, samples=1),
        start=Start(resumed_after_step=0, link_probe=None, probe=None),
        watch=Stopwatch(import_s=1.0),
        loop=loop,
    )


@pytest.fixture
def alone() -> Iterator[None]:
    """A process group of this process."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def _published(records: Path) -> RunRecord:
    return RunRecord.model_validate_json((records / "run-1" / "record.json").read_text())


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("complete", 0),
        ("failed", 1),
        ("stopped-wrong-link", 3),
        ("stopped-nan-loss", 4),
        ("hung", 5),
        ("interrupted", 128 + signal.SIGTERM),
    ],
)
def test_the_exit_code_tells_how_the_run_ended(tmp_path: Path, status: Status, code: int) -> None:
    assert conclude(_ending(tmp_path / "run-1", records=tmp_path / "records", status=status)) == code
    assert _published(tmp_path / "records").status == status


@pytest.mark.usefixtures("alone")
def test_the_clock_holds_the_seconds_of_the_lines(tmp_path: Path) -> None:
    end = _ending(tmp_path / "run-1", records=tmp_path / "records")
    end.loop.bookkeeping_s = 0.25
    conclude(end)
    clock = _published(tmp_path / "records").ranks[0].clock
    (line,) = end.loop.writer.finished
    assert (clock.import_s, clock.warmup_s, clock.timed_s, clock.bookkeeping_s) == (1.0, 0.0, line.seconds, 0.25)


def _conclude_one_of_two(folder: Path, rank: int) -> None:
    """Rank 1 has nowhere to publish to."""
    store = dist.FileStore(str(folder / "store"), 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    records = folder / ("records" if rank == 0 else "blocked")
    code = conclude(_ending(folder / "run-1", records=records, rank=rank, ranks=2))
    (folder / f"code-{rank}").write_text(str(code))
    dist.destroy_process_group()


def test_files_that_one_rank_couldn_t_publish_fail_the_record_of_all(tmp_path: Path) -> None:
    (tmp_path / "blocked").write_text("a file where a folder is needed")
    fresh = multiprocessing.get_context("spawn")
    ranks = [fresh.Process(target=_conclude_one_of_two, args=(tmp_path, rank)) for rank in (0, 1)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(120)
    assert [(tmp_path / f"code-{rank}").read_text() for rank in (0, 1)] == ["1", "1"]
    record = _published(tmp_path / "records")
    assert (record.status, record.verdict.outcome) == ("failed", "INVALID")
    assert len(record.ranks) == 2


def test_a_full_disk_here_holds_no_record_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run-1"
    for file in (publish.steps_file(run, 0), publish.log_file(run, 0), run / publish.RECORD):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to("/dev/full")
    assert salvage(_ending(run, records=tmp_path / "records")) == 1
    arrived = tmp_path / "records" / "run-1"
    assert _published(tmp_path / "records").status == "failed"
    assert '"step":1' in (arrived / "steps" / "rank-00000.jsonl").read_text()
    assert (arrived / "logs" / "rank-00000.log").read_text().startswith("not captured")
    assert "rank-00000.jsonl: can't be kept: No space left on device" in capsys.readouterr().err
