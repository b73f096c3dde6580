"""A step's line holds the step's own time: a checkpoint's stands apart, the next step begins after it."""

from pathlib import Path

import pytest

from trainer import steps
from trainer.feed import MicroBatch
from trainer.record import StepLine
from trainer.steps import StepWriter

pytestmark = pytest.mark.torch


class Clock:
    """A clock that goes when it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(steps, "time", clock)
    return clock


def _batch(targets: int = 62) -> MicroBatch:
    return MicroBatch(inputs={}, real_tokens=20, padded_tokens=12, targets_of_step=targets)


def _written(path: Path) -> list[StepLine]:
    return [StepLine.model_validate_json(line) for line in path.read_text().splitlines()]


def test_a_checkpoint_is_in_no_step(tmp_path: Path, clock: Clock) -> None:
    writer = StepWriter(tmp_path / "steps.jsonl")
    writer.fed([_batch()], 0.25)
    clock.now += 2
    writer.ended(1, "timed", 6.5, 1.0)
    clock.now += 30
    writer.saved()
    writer.fed([_batch()], 0.0)
    clock.now += 3
    writer.ended(2, "timed", 6.4, 1.0)
    writer.close()
    first, second = _written(tmp_path / "steps.jsonl")
    assert (first.seconds, first.checkpoint_s, first.data_wait_s) == (2, 30, 0.25)
    assert (second.seconds, second.checkpoint_s, second.data_wait_s) == (3, 0, 0)


def test_what_happens_before_a_restart_is_in_no_step(tmp_path: Path, clock: Clock) -> None:
    writer = StepWriter(tmp_path / "steps.jsonl")
    clock.now += 50
    writer.restart()
    writer.fed([_batch()], 0.0)
    clock.now += 1
    writer.ended(1, "warmup", 6.5, None)
    writer.close()
    assert writer.lines[0].seconds == 1


def test_record_keeping_between_two_steps_is_in_neither(tmp_path: Path, clock: Clock) -> None:
    writer = StepWriter(tmp_path / "steps.jsonl")
    for step in (1, 2):
        writer.fed([_batch()], 0.0)
        clock.now += 2
        writer.ended(step, "timed", 6.5, 1.0)
        clock.now += 0.5
        assert writer.restart() == 0.5
    assert [line.seconds for line in writer.finished] == [2, 2]


def test_a_full_disk_loses_no_finished_step(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "steps.jsonl").symlink_to("/dev/full")
    writer = StepWriter(tmp_path / "steps.jsonl")
    writer.fed([_batch()], 0.0)
    clock.now += 1
    writer.ended(1, "timed", 6.5, 1.0)
    assert [line.step for line in writer.finished] == [1]
    with pytest.raises(OSError, match="No space left"):
        writer.flush()
    assert [line.step for line in writer.finished] == [1]


def test_tokens_of_all_micro_batches_are_added(tmp_path: Path, clock: Clock) -> None:
    writer = StepWriter(tmp_path / "steps.jsonl")
    writer.fed([_batch(), _batch()], 0.0)
    assert writer.targets == 62
    clock.now += 1
    writer.ended(1, "timed", 6.5, 1.0)
    writer.close()
    assert (writer.lines[0].real_tokens, writer.lines[0].padded_tokens) == (40, 24)


@pytest.mark.parametrize(
    ("targets", "loss", "norm"), [(0, 0.0, 1.0), (62, float("nan"), float("inf")), (62, float("inf"), float("nan"))]
)
def test_what_is_not_a_number_is_none(tmp_path: Path, clock: Clock, targets: int, loss: float, norm: float) -> None:
    writer = StepWriter(tmp_path / "steps.jsonl")
    writer.fed([_batch(targets)], 0.0)
    clock.now += 1
    writer.ended(1, "timed", loss, norm)
    writer.close()
    (line,) = _written(tmp_path / "steps.jsonl")
    assert line.loss is None
    assert line.gradient_norm == (norm if norm == 1.0 else None)


def test_a_finished_step_is_on_disk_once_the_next_one_ends(tmp_path: Path, clock: Clock) -> None:
    writer = StepWriter(tmp_path / "steps.jsonl")
    for step in (1, 2):
        writer.fed([_batch()], 0.0)
        clock.now += 1
        writer.ended(step, "timed", 6.5, 1.0)
    assert [line.step for line in _written(tmp_path / "steps.jsonl")] == [1]
    writer.close()
    assert [line.step for line in _written(tmp_path / "steps.jsonl")] == [1, 2]
