"""Figures as people read them: three significant digits and a unit."""

import math
from collections.abc import Callable

from workloads.planning.prediction import Range

_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def spread(figures: Range, say: Callable[[float], str]) -> str:
    """Expected value and its range."""
    low, expected, high = (say(figure) for figure in (figures.low, figures.expected, figures.high))
    return expected if low == high else f"{expected} ({low} - {high})"


def number(value: float) -> str:
    """Three significant digits, thousands grouped."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = 2 - math.floor(math.log10(abs(value)))
    rounded = round(value, digits)
    # Rounding may carry into a new place: 9.996 is 10.0.
    digits = 2 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(0, digits)}f}"


def in_bytes(value: float) -> str:
    """In powers of ten."""
    for size, unit in _BYTES:
        if value >= size:
            return f"{number(value / size)} {unit}"
    return f"{number(value)} B"


def in_seconds(value: float) -> str:
    """Milliseconds, seconds, minutes or hours."""
    if value == 0:
        return "0 s"
    if value < 1:
        return f"{number(value * 1000)} ms"
    if value < 600:
        return f"{number(value)} s"
    return f"{number(value / 60)} min" if value < 36_000 else f"{number(value / 3600)} h"
