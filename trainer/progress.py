"""How far a run is, in plain lines: a pod's log has no cursor to move."""

import statistics
from collections.abc import Sequence

RECENT = 20
"""Steps whose median the estimate rests on."""


def progress_line(step: int, steps: int, loss: float, recent_s: Sequence[float]) -> str:
    """`step 12 of 40: 0.41 s, loss 5.213, 11 s left`; what checkpoints take is not in the estimate."""
    left = _words((steps - step) * statistics.median(recent_s))
    return f"step {step} of {steps}: {recent_s[-1]:.4g} s, loss {loss:.3f}, {left} left"


def _words(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02} min"
