"""How far a run is: by Trainer's own status where it keeps one, else by the lines of rank 0. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from workloads.operations.pending.observed import Document

_STEP = re.compile(r"^(\[\w+\]:)?step (?P<step>\d+) of (?P<steps>\d+): (?P<seconds>[\d.e+-]+) s(, .*)?$")
"""As the trainer prints it, behind the name that torchrun gives its worker."""
_RECENT = 10
"""Steps whose mean stands for those that remain: warm-up is over soon, and one slow step is no trend."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """`share` is 0 to 1. `step_s`: of the last steps, None where nobody says; `left_s`: of what remains."""

    share: float
    words: str
    step_s: float | None
    left_s: float | None


def progress(train_job: Document | None, log: Sequence[str]) -> Progress | None:
    """None before the first step."""
    return _by_lines(log) or _by_status(train_job or {})


def _by_lines(log: Sequence[str]) -> Progress | None:
    found = [match for line in log if (match := _STEP.match(line.strip()))]
    if not found:
        return None
    step, steps = int(found[-1]["step"]), int(found[-1]["steps"])
    recent = [float(match["seconds"]) for match in found[-_RECENT:]]
    step_s = sum(recent) / len(recent)
    return Progress(share=step / steps, words=f"step {step} of {steps}", step_s=step_s, left_s=(steps - step) * step_s)


def _by_status(train_job: Document) -> Progress | None:
    """`trainerStatus` is behind an alpha gate of Trainer 2.3: there or not."""
    status = (train_job.get("status") or {}).get("trainerStatus") or {}
    percent, left = status.get("progressPercentage"), status.get("estimatedRemainingSeconds")
    if percent is None:
        return None
    return Progress(share=percent / 100, words=f"{percent}%", step_s=None, left_s=None if left is None else float(left))
