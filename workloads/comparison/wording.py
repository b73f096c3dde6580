"""Figures as people read them. None is always shown as a dash, never as a zero."""

from workloads.comparison.statistics import Interval

NOTHING = "\N{EN DASH}"
TIMES = "\N{MULTIPLICATION SIGN}"


def significant(value: float, digits: int = 3) -> str:
    """`value` to so many significant digits, without an exponent, thousands separated."""
    if value == 0:
        return "0"
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return f"{value:,.{max(0, digits - 1 - exponent)}f}"


def seconds(value: float | None) -> str:
    """`0.412 s`, `5.90 s`, `2 h 05 min`."""
    if value is None:
        return NOTHING
    if value < 0.0995:
        return f"{significant(value * 1000)} ms"
    if value < 600:
        return f"{significant(value)} s"
    minutes = round(value / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"


def size(value: float | None) -> str:
    """Bytes by powers of ten: `36.9 MB`."""
    if value is None:
        return NOTHING
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(value) >= factor:
            return f"{significant(value / factor)} {unit}"
    return f"{value:.0f} B"


def rate(bits_per_s: float) -> str:
    """`50 Mbit/s`, `1 Gbit/s`."""
    for unit, factor in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bits_per_s >= factor:
            return f"{bits_per_s / factor:g} {unit}"
    return f"{bits_per_s:g} bit/s"


def count(value: float | None) -> str:
    """`1,024`; small figures keep three digits."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if abs(value) >= 100 else significant(value)


def share(value: float | None) -> str:
    """`41.2%`."""
    return NOTHING if value is None else f"{significant(value * 100)}%"


def usd(value: float | None) -> str:
    """`$12.40`."""
    if value is None:
        return NOTHING
    return f"${value:,.2f}" if value >= 0.1 else f"${significant(value)}"


def times(interval: Interval | None) -> str:
    """A ratio as `6.31x`, with the sign that prints well."""
    if interval is None:
        return NOTHING
    return f"{significant(interval.value)}{TIMES}"


def bounds(interval: Interval | None) -> str:
    """`6.12-6.50`, with a dash that prints well."""
    if interval is None:
        return NOTHING
    return f"{significant(interval.low)}{NOTHING}{significant(interval.high)}"
