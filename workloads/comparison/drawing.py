"""What all plots share: colours that the page turns into its own, a style, and the way to an `<svg>` element."""

import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import matplotlib.ticker
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from workloads.comparison.figures import CLOCK_PARTS

INK, FAINT, GRID, BAND, PAGE = "#0f0f01", "#0f0f02", "#0f0f03", "#0f0f04", "#0f0f05"
ARMS = tuple(f"#0f1f{number:02x}" for number in range(1, 9))
PARTS = tuple(f"#0f2f{number:02x}" for number in range(1, len(CLOCK_PARTS) + 1))
_CSS = {
    INK: "var(--ink)",
    FAINT: "var(--faint)",
    GRID: "var(--grid)",
    BAND: "var(--band)",
    PAGE: "var(--page)",
    **{color: f"var(--arm-{number})" for number, color in enumerate(ARMS, 1)},
    **{color: f"var(--part-{number})" for number, color in enumerate(PARTS, 1)},
}
_WIDTH_INCHES = 4.6

# matplotlib's own types want each key as a literal; it checks names and values itself.
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "topolab",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.parse_math": False,
    "axes.edgecolor": GRID,
    "axes.labelcolor": FAINT,
    "axes.spines.left": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": GRID,
    "xtick.labelcolor": FAINT,
    "ytick.color": GRID,
    "ytick.labelcolor": FAINT,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.handlelength": 1.2,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}


@dataclass(frozen=True)
class Plot:
    """One plot: what it shows in words, and its `<svg>` element."""

    name: str
    title: str
    caption: str
    svg: str


def svg(
    name: str,
    title: str,
    draw: Callable[[Axes], None],
    *,
    rows: float,
    legend: Sequence[str] = (),
    left: float = 0.1,
) -> str:
    """An `<svg>` element of what `draw` puts on the axes, `rows` of 0.74 inches high.

    Drawn into fixed margins (inches): to have matplotlib find them would draw everything twice."""
    columns = 1 if max(map(len, legend), default=0) > 20 else 2
    below = 0.55 + 0.21 * math.ceil(len(legend) / columns)
    height = 0.1 + 0.74 * rows + below
    with mpl.rc_context():
        mpl.rcParams.update(_STYLE)
        figure = Figure(figsize=(_WIDTH_INCHES, height))
        width = 1 - (left + 0.15) / _WIDTH_INCHES
        draw(figure.add_axes((left / _WIDTH_INCHES, below / height, width, 0.74 * rows / height)))
        if legend:
            figure.legend(loc="lower left", bbox_to_anchor=(0, 0), borderaxespad=0, ncols=columns, frameon=False)
        buffer = io.StringIO()
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(buffer, format="svg", metadata=nothing, transparent=True)
    return _for_page(buffer.getvalue(), name, title)


def plain_ticks(axis: Axis, *, decades: bool = False) -> None:
    """1, 2, 5, 10 and so on along a logarithmic axis, without exponents; the powers of ten alone where it is long."""
    axis.set_major_locator(matplotlib.ticker.LogLocator(base=10, subs=(1.0,) if decades else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(_plain)
    axis.set_minor_locator(matplotlib.ticker.NullLocator())


def _for_page(document: str, name: str, title: str) -> str:
    """The `<svg>` element with the page's colours and fonts, and ids that no other plot has."""
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(url\(|href=")#', rf"\g<1>#{name}-", svg)
    svg = re.sub(r"(font: [^;\"]*?[0-9.]+px)[^;\"]*", r"\1 var(--sans)", svg)
    for color, variable in _CSS.items():
        svg = svg.replace(color, variable)
    svg = re.sub(r' (width|height)="[0-9.]+pt"', "", svg, count=2)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)


def _plain(value: float, _position: float) -> str:
    return f"{value:g}"
