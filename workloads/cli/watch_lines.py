"""What `topo watch` shows of one look: rows for a screen, one line for a log. Pure."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from workloads.cli.units import in_seconds, spread
from workloads.operations.watch.watched import Watched
from workloads.planning.plan import Plan
from workloads.planning.prediction import Range

_BAR = 30


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the stack's file predicts; both None where there is no file."""

    step_s: Range | None
    wall_clock_s: Range | None


def expected_of(plan: Plan | None) -> Expected:
    """Of a plan, if there is one."""
    if plan is None:
        return Expected(step_s=None, wall_clock_s=None)
    return Expected(step_s=plan.prediction.step.step_s, wall_clock_s=plan.prediction.wall_clock_s)


def rows(seen: Watched, expected: Expected) -> Iterator[tuple[str, str]]:
    """Label and text; what isn't known has no row."""
    yield "job", seen.job
    yield "phase", seen.phase
    yield "nodes", _nodes(seen)
    yield "pods", ", ".join(f"{count} {phase}" for phase, count in sorted(seen.pods.items())) or "none"
    if seen.progress is not None:
        filled = round(_BAR * min(1.0, seen.progress.share))
        yield "progress", f"{'#' * filled}{'.' * (_BAR - filled)} {seen.progress.words}"
    yield from _times(seen, expected)
    yield "spent", _dollars(seen)
    for finding in seen.findings:
        yield "why", finding.sentence
        yield "remedy", finding.remedy


def line(seen: Watched) -> str:
    """One look in one line, for a log."""
    progress = "" if seen.progress is None else f", {seen.progress.words}"
    left = "" if seen.progress is None or seen.progress.left_s is None else f", {in_seconds(seen.progress.left_s)} left"
    why = "".join(f"; {finding.sentence}" for finding in seen.findings)
    return f"{seen.phase}{progress}{left}; {_dollars(seen)}{why}"


def document(seen: Watched, expected: Expected) -> dict[str, Any]:
    """One look for programs."""
    return {
        "trainJob": seen.job,
        "phase": seen.phase,
        "end": seen.end,
        "pods": dict(sorted(seen.pods.items())),
        "nodes": {"asked": seen.nodes.asked, **dict(seen.nodes.stages)},
        "progress": None if seen.progress is None else asdict(seen.progress),
        "predicted": asdict(expected),
        "usdPerHour": seen.nodes.usd_per_hour,
        "spentUsd": seen.nodes.spent_usd,
        "findings": [{"sentence": one.sentence, "remedy": one.remedy} for one in seen.findings],
    }


def _nodes(seen: Watched) -> str:
    if not seen.nodes.asked:
        return "none that Karpenter made"
    return f"{seen.nodes.asked} asked for, {', '.join(f'{count} {word}' for word, count in seen.nodes.stages)}"


def _times(seen: Watched, expected: Expected) -> Iterator[tuple[str, str]]:
    done = seen.progress
    predicted = None if expected.step_s is None else f"predicted {spread(expected.step_s, in_seconds)}"
    if done is not None and done.step_s is not None:
        yield "step", ", ".join(part for part in (in_seconds(done.step_s), predicted) if part)
    elif predicted is not None:
        yield "step", predicted
    if done is not None and done.left_s is not None and seen.end is None:
        yield "left", in_seconds(done.left_s)
    elif expected.wall_clock_s is not None and seen.end is None:
        yield "left", f"the run is predicted to take {spread(expected.wall_clock_s, in_seconds)} from its start"


def _dollars(seen: Watched) -> str:
    if not seen.nodes.asked:
        return "no GPU node is up"
    if seen.nodes.spent_usd is None or seen.nodes.usd_per_hour is None:
        return "dollars unknown: no price for these nodes"
    return f"{seen.nodes.spent_usd:.2f} USD for the nodes that are up, {seen.nodes.usd_per_hour:.2f} an hour"
