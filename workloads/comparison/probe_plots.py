"""Bandwidth against message size, one plot a collective: where a link stops to be slow for small messages' sake."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from trainer.bandwidth import COLLECTIVES
from trainer.record import Collective
from workloads.comparison.drawing import ARMS, Plot, plain_ticks, svg
from workloads.comparison.probe_figures import LinkFigures, ProbeFigures

_DASHES = {"same-pod": (0, (1, 2)), "same-node": (0, (4, 2)), "other-node": "solid"}
"""Dotted inside of a pod, dashed between pods of one node, solid between nodes."""


def probe_plots(arms: Sequence[ProbeFigures]) -> tuple[Plot, ...]:
    """Those that the figures allow, in the order of the page."""
    shown = [arm for arm in arms if arm.links]
    return tuple(
        _plot(name, shown) for name in COLLECTIVES if any(link.curves[name] for a in shown for link in a.links)
    )


def _plot(name: Collective, arms: Sequence[ProbeFigures]) -> Plot:
    labels = [f"{arm.name}, {link.link_class}" for arm in arms for link in arm.links if link.curves[name]]

    def draw(axes: Axes) -> None:
        axes.spines["left"].set_visible(True)
        axes.grid(axis="both")
        axes.set_xlabel("message size, MB")
        axes.set_ylabel("GB/s")
        axes.set_xscale("log")
        axes.set_yscale("log")
        for number, arm in enumerate(arms):
            for link in arm.links:
                _line(axes, link, name, ARMS[number % len(ARMS)], f"{arm.name}, {link.link_class}")
        plain_ticks(axes.xaxis, decades=True)
        plain_ticks(axes.yaxis)

    return Plot(
        name,
        name.capitalize(),
        "Bus bandwidth, what each link of a ring carries, against the size of the whole tensor; median over runs. "
        "Dotted inside a pod, dashed between pods of a node, solid between nodes.",
        svg(name, f"Bus bandwidth of {name} against message size", draw, rows=3.4, legend=labels, left=0.6),
    )


def _line(axes: Axes, link: LinkFigures, name: Collective, color: str, label: str) -> None:
    curve = link.curves[name]
    if not curve:
        return
    sizes, rates = [size / 1e6 for size in curve], [rate / 1e9 for rate in curve.values()]
    axes.plot(sizes, rates, color=color, linestyle=_DASHES[link.link_class], marker="o", markersize=3.5, label=label)
