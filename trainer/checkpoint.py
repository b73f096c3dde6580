"""Checkpoints that are whole or don't count, and a wish to stop that all ranks share.

A spot interruption reaches one pod only, so a checkpoint started by a signal handler would hang or stay half
written. Here the handler only notes the wish; the loop agrees on it in the reduction that each step makes.
"""

import signal
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from pydantic import Field, ValidationError

from trainer.config import TrainConfig
from trainer.contract import Contract


class Mark(Contract):
    """What each rank writes into a checkpoint once its own part, and everybody's, is on disk."""

    ranks: int = Field(gt=0)
    zero_stage: int
    sequences_per_step: int


class StopWish:
    """True once this process was asked to end."""

    def __init__(self) -> None:
        self.raised = False

    def listen(self) -> None:
        """Note SIGTERM instead of dying of it."""
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a handler's signature
        self.raised = True


def checkpoints_of(config: TrainConfig, folder: Path) -> Path:
    """The folder of this job's checkpoints; pods must share it, or a run of several pods can't resume."""
    return folder / config.job_name


def mark_complete(config: TrainConfig, checkpoint: Path, rank: int) -> None:
    """Say that this rank's part is whole; call after all ranks have saved."""
    mark = Mark(
        ranks=config.ranks,
        zero_stage=config.recipe.zero.stage,
        sequences_per_step=config.sequences_per_step,
    )
    partial = checkpoint / f"{_mark_name(rank)}.partial"
    partial.write_text(mark.model_dump_json())
    partial.replace(checkpoint / _mark_name(rank))


def complete_steps(config: TrainConfig, folder: Path, rank: int) -> dict[int, Path]:
    """Checkpoints that this rank finished and whose common state it sees, by step.

    Raises ValueError where one was written by another arrangement: DeepSpeed's shards fit only their own.
    """
    found = {}
    for checkpoint in folder.glob("checkpoint-*"):
        step = checkpoint.name.removeprefix("checkpoint-")
        mark = checkpoint / _mark_name(rank)
        if step.isdigit() and mark.is_file() and (checkpoint / "trainer_state.json").is_file():
            _check(config, mark)
            found[int(step)] = checkpoint
    return found


def newest_common(steps_by_rank: Sequence[Sequence[int]]) -> int | None:
    """The newest step that every rank can resume from."""
    common = set(steps_by_rank[0]).intersection(*steps_by_rank[1:])
    return max(common, default=None)


def _mark_name(rank: int) -> str:
    return f"complete-rank-{rank:05d}.json"


def _check(config: TrainConfig, path: Path) -> None:
    try:
        mark = Mark.model_validate_json(path.read_text())
    except ValidationError as error:
        raise ValueError(f"{path}: is no mark of a complete checkpoint; delete the checkpoint") from error
    for what, written, wanted in (
        ("ranks", mark.ranks, config.ranks),
        ("ZeRO stage", mark.zero_stage, config.recipe.zero.stage),
        ("sequences a step", mark.sequences_per_step, config.sequences_per_step),
    ):
        if written != wanted:
            raise ValueError(
                f"{path.parent}: written with {what} {written}, this run has {wanted}; resume with the same "
                "topology and recipe, or delete the checkpoint"
            )
