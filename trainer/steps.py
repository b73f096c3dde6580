"""One StepLine an optimizer step, timed from the end of the step before to its own end."""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from trainer.feed import MicroBatch
from trainer.record import Phase, StepLine


@dataclass
class _Open:
    """What has been counted of the step that is under way."""

    real_tokens: int = 0
    padded_tokens: int = 0
    targets: int = 0
    data_wait_s: float = 0.0


def is_finite(loss: float, gradient_norm: float | None) -> bool:
    """Whether a step's loss and gradient are numbers; a norm that nobody knows says nothing."""
    return math.isfinite(loss) and (gradient_norm is None or math.isfinite(gradient_norm))


class StepWriter:
    """Times steps and writes their lines.

    A line is held back until its step's checkpoint, if it has one, has been timed too.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: TextIO = path.open("w")
        self._open = _Open()
        self._held: StepLine | None = None
        self._mark = time.perf_counter()
        self.lines: list[StepLine] = []

    @property
    def targets(self) -> int:
        """Target tokens of all ranks in the step that is under way."""
        return self._open.targets

    @property
    def last_s(self) -> float:
        """Seconds of the last finished step; 0 before there is one."""
        return self._held.seconds if self._held is not None else 0.0

    @property
    def finished(self) -> tuple[StepLine, ...]:
        """All finished steps, the one that is held back included."""
        return (*self.lines, *([] if self._held is None else [self._held]))

    def restart(self) -> float:
        """Begin the next step now: the seconds since the last one ended belong to no step, and are returned."""
        before, self._mark = self._mark, time.perf_counter()
        return self._mark - before

    def charge(self, seconds: float) -> None:
        """Add seconds that passed before it to the step that has just begun."""
        self._mark -= seconds

    def fed(self, batches: list[MicroBatch], waited_s: float) -> None:
        """Count the micro-batches that a step was given."""
        self._open.real_tokens += sum(batch.real_tokens for batch in batches)
        self._open.padded_tokens += sum(batch.padded_tokens for batch in batches)
        self._open.targets = batches[0].targets_of_step
        self._open.data_wait_s += waited_s

    def ended(self, step: int, phase: Phase, loss: float, gradient_norm: float | None) -> None:
        """Close a step."""
        now = time.perf_counter()
        self.flush()
        known = self._open.targets and math.isfinite(loss)
        norm_known = gradient_norm is not None and math.isfinite(gradient_norm)
        self._held = StepLine(
            step=step,
            phase=phase,
            seconds=now - self._mark,
            loss=loss if known else None,
            gradient_norm=gradient_norm if norm_known else None,
            finite=is_finite(loss, gradient_norm),
            real_tokens=self._open.real_tokens,
            padded_tokens=self._open.padded_tokens,
            data_wait_s=self._open.data_wait_s,
            checkpoint_s=0.0,
            evaluation_s=0.0,  # no config asks for an evaluation
        )
        self._open, self._mark = _Open(), now

    def saved(self) -> float:
        """A checkpoint that began when the last step ended is done; its seconds are in no step, and returned."""
        assert self._held is not None, "a checkpoint follows a step"
        now = time.perf_counter()
        seconds, self._mark = now - self._mark, now
        self._held = self._held.model_copy(update={"checkpoint_s": seconds})
        return seconds

    def flush(self) -> None:
        """Write the line that was held back, so that a killed process leaves all its finished steps."""
        if self._held is None:
            return
        line, self._held = self._held, None
        self.lines.append(line)
        self._file.write(line.model_dump_json() + "\n")
        self._file.flush()

    def close(self) -> None:
        """Write what is held back and close the file."""
        self.flush()
        self._file.close()
