"""Step lines of a job that isn't ours, from its marks or from the JSON lines that it prints. Pure."""

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from trainer.record import Phase, StepLine

_PREFIX = re.compile(r"^\[\w+?(\d+)\]:")
"""torchrun's `--tee` puts `[default0]:` before what local rank 0 prints."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """The end of one optimizer step on one rank."""

    step: int
    unix_s: float
    seconds: float | None
    """As the job says; None: the time since its mark before."""
    loss: float | None
    tokens: int


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A mark that was printed, and by which local rank, as far as the line tells."""

    local_rank: int
    mark: Mark


def printed(line: str, unix_s: float) -> Printed | None:
    """The step of a printed line such as `{"step": 3, "loss": 2.1, "seconds": 0.4, "tokens": 4096}`; None: no step.

    What stands before the brace is overlooked, but for torchrun's own prefix. Without one it is local rank 0.
    """
    start = line.find("{")
    if start < 0:
        return None
    try:
        values = json.loads(line[start:].strip())
    except ValueError:
        return None
    mark = _mark(values, unix_s)
    prefix = _PREFIX.match(line)
    return None if mark is None else Printed(local_rank=int(prefix[1]) if prefix else 0, mark=mark)


def marks_of(text: str) -> list[Mark]:
    """The marks of one rank's file; a torn last line is left out."""
    found = []
    for line in text.splitlines():
        try:
            values = json.loads(line)
        except ValueError:
            continue
        mark = _mark(values, float(values.get("unix_s", math.nan)))
        if mark is not None:
            found.append(mark)
    return found


def step_lines(marks: Sequence[Mark], warmup_steps: int) -> list[StepLine]:
    """One line a mark that can be timed: the first one of a job that tells no seconds only starts the clock.

    A mark that comes several steps after the one before shares its time out evenly.
    """
    timed = list(_timed(marks))
    return [_line(mark, seconds, "warmup" if n < warmup_steps else "timed") for n, (mark, seconds) in enumerate(timed)]


def _timed(marks: Sequence[Mark]) -> Iterable[tuple[Mark, float]]:
    ascending = [b for a, b in pairwise([None, *marks]) if b is not None and (a is None or b.step > a.step)]
    for before, mark in pairwise([None, *ascending]):
        assert mark is not None
        seconds = mark.seconds
        if seconds is None and before is not None:
            seconds = (mark.unix_s - before.unix_s) / (mark.step - before.step)
        if seconds is not None and seconds > 0:
            yield mark, seconds


def _line(mark: Mark, seconds: float, phase: Phase) -> StepLine:
    known = mark.loss is not None and math.isfinite(mark.loss)
    return StepLine(
        step=mark.step,
        phase=phase,
        seconds=seconds,
        loss=mark.loss if known else None,
        gradient_norm=None,
        finite=mark.loss is None or known,
        real_tokens=mark.tokens,
        padded_tokens=0,
        data_wait_s=0.0,
        checkpoint_s=0.0,
        evaluation_s=0.0,
    )


def _mark(values: Any, unix_s: float) -> Mark | None:
    step = values.get("step") if isinstance(values, dict) else None
    if not isinstance(step, int) or isinstance(step, bool) or step < 1:
        return None
    return Mark(
        step=step,
        unix_s=unix_s,
        seconds=_number(values.get("seconds")),
        loss=_number(values.get("loss")),
        tokens=max(0, int(_number(values.get("tokens")) or 0)),
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
