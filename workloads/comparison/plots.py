"""The plots of a report, as inline SVG that takes its colours from the page and is the same at each build.

matplotlib draws with stand-in colours, which become CSS variables, so that one plot serves light, dark and
paper. Text stays text. Widths are for a phone; a wide screen puts two plots side by side.
"""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes

from workloads.comparison.compare import Comparison
from workloads.comparison.drawing import ARMS, BAND, FAINT, INK, PAGE, PARTS, Plot, plain_ticks, svg
from workloads.comparison.figures import CLOCK_PARTS, ArmFigures, sent_allowed
from workloads.comparison.statistics import Series
from workloads.comparison.wording import bounds, seconds, size, times

_POINTS_SHOWN = 240
"""Per run in the time course; more are joined, keeping each piece's extremes."""
_LOG_FROM = 3.0
"""Axes turn logarithmic where the slowest arm is so many times the fastest."""


def plots(comparison: Comparison, arms: Sequence[ArmFigures]) -> tuple[Plot, ...]:
    """Those that the figures allow, in the order of the page."""
    counted = [arm for arm in arms if arm.step_s is not None]
    colors = {arm.name: ARMS[index % len(ARMS)] for index, arm in enumerate(counted)}
    made: list[Plot] = []
    if counted:
        series = _series_by_arm(comparison)
        made.append(_distributions(counted, series, colors))
        if len(counted) > 1:
            made.append(_ratios(counted, colors))
        if any(arm.sent_bytes is not None and arm.expected_bytes for arm in counted):
            made.append(_bytes(counted, colors))
        made.append(_courses(counted, series, colors))
    if any(arm.clock_s for arm in arms):
        made.append(_clocks([arm for arm in arms if arm.clock_s]))
    return tuple(made)


def _series_by_arm(comparison: Comparison) -> dict[str, list[Series]]:
    return {arm.name: [comparison.series[run.record.run_id] for run in arm.counted] for arm in comparison.arms}


def _distributions(arms: Sequence[ArmFigures], series: dict[str, list[Series]], colors: dict[str, str]) -> Plot:
    predicted = any(arm.predicted for arm in arms)
    note = " The bar under an arm is the range predicted before the run." if predicted else ""

    def draw(axes: Axes) -> None:
        logarithmic = _step_axis(axes, arms, series)
        for row, arm in _rows(axes, arms, lambda arm: seconds(arm.step_s)):
            _violin(axes, row, np.concatenate(series[arm.name]), colors[arm.name], logarithmic)
            assert arm.step_s is not None
            axes.plot([arm.step_s] * 2, [row - 0.24, row + 0.24], color=INK, linewidth=2)
            if arm.predicted:
                low, high = arm.predicted.step_s.low, arm.predicted.step_s.high
                axes.plot([low, high], [row - 0.33] * 2, color=FAINT, linewidth=3, solid_capstyle="butt")

    return Plot(
        "distributions",
        "Step time",
        f"Distribution of the timed steps of all runs; the line is the typical step.{note}",
        svg("distributions", "Distribution of step times by arm", draw, rows=len(arms)),
    )


def _ratios(arms: Sequence[ArmFigures], colors: dict[str, str]) -> Plot:
    baseline = next((arm.name for arm in arms if arm.is_baseline), "")

    def draw(axes: Axes) -> None:
        axes.axvline(1.0, color=FAINT, linewidth=1, linestyle=(0, (3, 3)))
        axes.set_xlabel(f"times as long as {baseline}")
        if max(arm.ratio.high for arm in arms if arm.ratio) > _LOG_FROM:
            _logarithmic(axes)
        for row, arm in _rows(axes, arms, _ratio_figure):
            color = colors[arm.name]
            if arm.ratio is not None:
                axes.plot([arm.ratio.low, arm.ratio.high], [row, row], color=color, linewidth=2.5)
            axes.plot([arm.ratio.value if arm.ratio else 1.0], [row], marker="o", markersize=8, color=color)

    return Plot(
        "ratios",
        "Step time against the baseline",
        f"How many times as long a step takes as in {baseline}, with 95% confidence intervals.",
        svg("ratios", "Ratio of step times with confidence intervals", draw, rows=len(arms)),
    )


def _ratio_figure(arm: ArmFigures) -> str:
    return "baseline" if arm.ratio is None else f"{times(arm.ratio)} [{bounds(arm.ratio)}]"


def _bytes(arms: Sequence[ArmFigures], colors: dict[str, str]) -> Plot:
    shown = [arm for arm in arms if arm.sent_bytes is not None and arm.expected_bytes is not None]

    def draw(axes: Axes) -> None:
        axes.set_xlabel("MB sent per pod and step")
        for row, arm in _rows(axes, shown, lambda arm: size(arm.sent_bytes)):
            assert arm.expected_bytes is not None
            assert arm.sent_bytes is not None
            low, high = (value / 1e6 for value in sent_allowed(arm.expected_bytes))
            axes.barh(row, max(high - low, 1e-9), left=low, height=0.44, color=BAND, linewidth=0)
            axes.plot([arm.expected_bytes.per_pod_and_step / 1e6] * 2, [row - 0.22, row + 0.22], color=FAINT)
            axes.plot([arm.sent_bytes / 1e6], [row], marker="o", markersize=8, color=colors[arm.name])
        axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))

    return Plot(
        "bytes",
        "Bytes on the wire",
        "Measured by the counters (dot), predicted by the formula (line), accepted (band).",
        svg("bytes", "Bytes sent per pod and step, measured and predicted", draw, rows=len(shown)),
    )


def _courses(arms: Sequence[ArmFigures], series: dict[str, list[Series]], colors: dict[str, str]) -> Plot:
    def draw(axes: Axes) -> None:
        axes.spines["left"].set_visible(True)
        axes.grid(axis="y")
        axes.set_xlabel("timed step")
        axes.set_ylabel("seconds")
        for arm in arms:
            for number, run in enumerate(series[arm.name]):
                steps, values = _thinned(run)
                label = arm.name if number == 0 else None
                axes.plot(steps, values, color=colors[arm.name], linewidth=1.2, alpha=0.85, label=label)
        if _is_wide(arms):
            axes.set_yscale("log")
            plain_ticks(axes.yaxis)
        axes.set_xlim(left=1)

    return Plot(
        "courses",
        "Over the run",
        "Each timed step in order, one line a run: drifts and outliers show here.",
        svg("courses", "Step time over the run", draw, rows=2.2, legend=[arm.name for arm in arms], left=0.55),
    )


def _clocks(arms: Sequence[ArmFigures]) -> Plot:
    parts = [part for part in CLOCK_PARTS if any(part in arm.clock_s for arm in arms)]

    def draw(axes: Axes) -> None:
        axes.set_xlabel("seconds, mean over ranks and runs")
        labelled: set[str] = set()
        for row, arm in _rows(axes, arms, lambda arm: seconds(sum(arm.clock_s.values()))):
            left = 0.0
            for part, color in zip(CLOCK_PARTS, PARTS, strict=True):
                width = arm.clock_s.get(part, 0.0)
                label = part if width and part not in labelled else None
                if width:
                    axes.barh(row, width, left=left, height=0.44, color=color, linewidth=0, label=label)
                    labelled.add(part)
                left += width

    return Plot(
        "clock",
        "Where the wall time went",
        "A rank's time from start to end; only the timed steps are compared.",
        svg("clock", "Parts of the wall time by arm", draw, rows=len(arms), legend=parts),
    )


def _rows(
    axes: Axes, arms: Sequence[ArmFigures], figure_of: Callable[[ArmFigures], str]
) -> list[tuple[int, ArmFigures]]:
    """One row an arm, fastest on top, with its name over the row at the left and its figure at the right:
    names are as long as they like and take no width from the plot."""
    axes.set_ylim(-0.5, len(arms) - 0.4)
    axes.set_yticks([])
    axes.grid(axis="x")
    over_grid = {"facecolor": PAGE, "linewidth": 0, "pad": 1.5}
    placed = [(len(arms) - 1 - index, arm) for index, arm in enumerate(arms)]
    for row, arm in placed:
        across = axes.get_yaxis_transform()
        for x, text, side in ((0, arm.name, "left"), (1, figure_of(arm), "right")):
            axes.text(x, row + 0.3, text, transform=across, va="bottom", ha=side, bbox=over_grid)
    return placed


def _step_axis(axes: Axes, arms: Sequence[ArmFigures], series: dict[str, list[Series]]) -> bool:
    axes.set_xlabel("seconds per optimizer step")
    if _is_wide(arms):
        _logarithmic(axes)
        return True
    longest = max(float(np.quantile(run, 0.99)) for arm in arms for run in series[arm.name])
    axes.set_xlim(0, longest * 1.1)
    return False


def _is_wide(arms: Sequence[ArmFigures]) -> bool:
    typical = [arm.step_s for arm in arms if arm.step_s is not None]
    return max(typical) > _LOG_FROM * min(typical)


def _logarithmic(axes: Axes) -> None:
    axes.set_xscale("log")
    plain_ticks(axes.xaxis)


def _violin(axes: Axes, row: int, values: Series, color: str, logarithmic: bool) -> None:
    """A Gaussian kernel density, Silverman's bandwidth (1986), on the axis' own scale."""
    scaled = np.log(values) if logarithmic else values
    spread = float(np.std(scaled))
    smallest = 0.004 if logarithmic else 0.004 * float(np.max(values))
    width = max(1.06 * spread * len(scaled) ** -0.2, smallest)
    low, high = np.quantile(scaled, [0.005, 0.995])
    points = np.linspace(low - 3 * width, high + 3 * width, 96)
    kernel = np.exp(-0.5 * ((points[:, None] - scaled[None, :]) / width) ** 2)
    density = kernel.sum(axis=1)
    half = 0.24 * density / density.max()
    shown = np.exp(points) if logarithmic else points
    axes.fill_between(shown, row - half, row + half, color=color, alpha=0.45, linewidth=0)
    axes.plot(shown, row + half, color=color, linewidth=0.8)
    axes.plot(shown, row - half, color=color, linewidth=0.8)


def _thinned(values: Series) -> tuple[Series, Series]:
    """At most 240 points: of each piece of the course its smallest and its largest step, in order."""
    if len(values) <= _POINTS_SHOWN:
        return np.arange(1.0, len(values) + 1), values
    pieces = np.array_split(np.arange(len(values)), _POINTS_SHOWN // 2)
    kept = sorted({int(piece[pick(values[piece])]) for piece in pieces for pick in (np.argmin, np.argmax)})
    return np.array(kept) + 1.0, values[kept]
