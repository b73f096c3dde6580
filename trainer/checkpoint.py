"""Checkpoints that are whole or don't count, and a wish to stop that all ranks share.

A spot interruption reaches one pod only, so a checkpoint started by a signal handler would hang or stay half
written. Here the handler only notes the wish; the loop agrees on it in the reduction that each step makes.
"""

import json
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from pydantic import Field, ValidationError

from trainer.config import TrainConfig
from trainer.contract import Contract

TRAINER_STATE = "trainer_state.json"
"""The Trainer's own name for what all ranks share: above all, the step."""

OVER = "over.json"
"""Beside the checkpoints: why no start of this job may go on."""


class CheckpointError(Exception):
    """A checkpoint that couldn't be saved; says which, why, and what is left."""


class Mark(Contract):
    """What each rank writes into a checkpoint once its own part, and everybody's, is on disk."""

    work: dict[str, str]
    """What the weights follow from, flat: key of the config to its value as JSON."""
    files: dict[str, int]
    """Every file that this rank sees in the checkpoint, marks apart, and its size in bytes."""


class _Over(Contract):
    """Why a restart of the job would end as the start before it did."""

    reason: str = Field(min_length=1)


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


def work_of(config: TrainConfig) -> dict[str, str]:
    """What the weights after a step follow from, flat. Shards fit only the ranks and recipe that wrote them."""
    chosen = {
        "ranks": config.ranks,
        "model": config.model.model_dump(exclude={"name"}),
        "data": config.data.model_dump(),
        "recipe": config.recipe.model_dump(exclude={"name", "omp_threads", "save_at_end"}),
        "sequence_length": config.sequence_length,
        "steps": config.steps,
        "seed": config.seed,
    }
    return dict(_flat("", chosen))


def checkpoint_folder(folder: Path, step: int) -> Path:
    """The folder of one checkpoint, named as the Trainer does."""
    return folder / f"checkpoint-{step}"


def mark_complete(config: TrainConfig, checkpoint: Path, rank: int) -> None:
    """Say that this rank's part is whole; call after all ranks have saved."""
    mark = Mark(work=work_of(config), files=_sizes(checkpoint))
    partial = checkpoint / f"{_mark_name(rank)}.partial"
    partial.write_text(mark.model_dump_json())
    partial.replace(checkpoint / _mark_name(rank))


def complete_steps(config: TrainConfig, folder: Path, rank: int) -> dict[int, Path]:
    """Checkpoints that this rank finished and whose files it sees whole, by step.

    One that lost a file, or a part of it, doesn't count, and is named on stderr. Raises ValueError where one was
    written by another run: its weights are not this run's.
    """
    found = {}
    for checkpoint in _checkpoints(folder):
        mark = checkpoint / _mark_name(rank)
        if not mark.is_file():
            continue
        known = _read(mark)
        _refuse_foreign(config, checkpoint, known)
        damage = _damage(checkpoint, known)
        if damage:
            print(f"{checkpoint}: damaged, so it doesn't count: {damage}", file=sys.stderr)
        else:
            found[_step(checkpoint)] = checkpoint
    return found


def newest_common(steps_by_rank: Sequence[Sequence[int]]) -> int | None:
    """The newest step that every rank can resume from."""
    common = set(steps_by_rank[0]).intersection(*steps_by_rank[1:])
    return max(common, default=None)


def remove_after(folder: Path, step: int) -> None:
    """Take away what lies after the step that all resume from: half written, damaged, or not everybody's.

    Its room is needed, and a mark left in it would vouch for what is saved there next.
    """
    for checkpoint in _checkpoints(folder):
        if _step(checkpoint) > step:
            shutil.rmtree(checkpoint, ignore_errors=True)


def refuse_leftovers(folder: Path) -> None:
    """Raise ValueError where a run that doesn't resume would write among an earlier run's checkpoints."""
    found = sorted(_checkpoints(folder), key=_step)
    if found:
        raise ValueError(
            f"{folder}: holds {found[-1].name} of an earlier run of this name; raise run.attempt, delete the folder, "
            "or set run.restarts so that the run goes on from it"
        )


def refuse_finished(config: TrainConfig, folder: Path, step: int | None) -> None:
    """Raise ValueError where nothing is left to train, or an earlier start ended for good."""
    if step is not None and step >= config.steps:
        raise ValueError(f"{folder}: step {step} of {config.steps} is saved there: the run is over; raise run.attempt")
    over = folder / OVER
    if over.is_file():
        reason = _Over.model_validate_json(over.read_text()).reason
        raise ValueError(
            f"{config.job_name}: an earlier start ended for good: {reason}; mend that, and raise run.attempt"
        )


def end_for_good(folder: Path, reason: str) -> None:
    """Let no restart of the job spend money on what would end the same way."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / OVER).write_text(_Over(reason=reason).model_dump_json())


def newest_marked(folder: Path) -> str:
    """The newest checkpoint that rank 0 marked, in words; for the sentence about one that couldn't be saved."""
    marked = [c for c in _checkpoints(folder) if (c / _mark_name(0)).is_file()]
    return f"the last complete one is {max(marked, key=_step).name}" if marked else "there is no complete one yet"


def _checkpoints(folder: Path) -> Iterator[Path]:
    for checkpoint in folder.glob("checkpoint-*"):
        if checkpoint.is_dir() and checkpoint.name.removeprefix("checkpoint-").isdecimal():
            yield checkpoint


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("checkpoint-"))


def _mark_name(rank: int) -> str:
    return f"complete-rank-{rank:05d}.json"


def _sizes(checkpoint: Path) -> dict[str, int]:
    files = (f for f in checkpoint.rglob("*") if f.is_file() and not f.name.startswith("complete-rank-"))
    return {f.relative_to(checkpoint).as_posix(): f.stat().st_size for f in files}


def _read(mark: Path) -> Mark:
    try:
        return Mark.model_validate_json(mark.read_text())
    except ValidationError as error:
        raise ValueError(f"{mark}: is no mark of a complete checkpoint; delete the checkpoint") from error


def _refuse_foreign(config: TrainConfig, checkpoint: Path, mark: Mark) -> None:
    wanted = work_of(config)
    for key in sorted(wanted.keys() | mark.work.keys()):
        written, here = mark.work.get(key, "absent"), wanted.get(key, "absent")
        if written != here:
            raise ValueError(
                f"{checkpoint}: written with {key} {written}, this run has {here}; raise run.attempt to begin a new "
                "run, or delete the checkpoint"
            )


def _damage(checkpoint: Path, mark: Mark) -> str | None:
    sizes = _sizes(checkpoint)
    for name, size in mark.files.items():
        if name not in sizes:
            return f"{name} is gone"
        if sizes[name] != size:
            return f"{name} has {sizes[name]} bytes, {size} were written"
    return None


def _flat(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{path}.{key}" if path else str(key), inner)
    else:
        yield path, json.dumps(value)
