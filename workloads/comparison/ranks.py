"""Rank by rank: where a straggler shows, since steps end together whoever was late."""

import statistics
from collections.abc import Sequence

from trainer.record import DeviceProbe, RankFacts, StepLine
from workloads.comparison.compare import Arm, Comparison
from workloads.comparison.records import Run
from workloads.comparison.sections import UNKNOWN, Cell, Column, Row, Table
from workloads.comparison.wording import NOTHING, seconds, significant

LATE = 2.0
"""Times the others' median data wait: such a rank holds the others up, if the wait is long enough to matter."""
MATTERS = 0.02
"""Share of a step."""


def ranks_table(comparison: Comparison) -> Table:
    """The ranks of each arm's first run that counts; arms of one rank have nobody to be compared with."""
    rows = [row for arm in comparison.arms for row in _rows(arm)]
    numeric = ("Median step", "Data wait a step", "Matrix products", "Host to device")
    return Table(
        "Ranks",
        "Of each arm's first run that counts. Steps end together, because ranks wait for each other: a straggler shows "
        "in its own data wait, and in what the probe found of its device before step 1.",
        (Column("Arm"), Column("Rank", numeric=True), Column("Node"), *(Column(n, numeric=True) for n in numeric)),
        tuple(rows),
    )


def late_ranks(run: Run) -> tuple[int, ...]:
    """Ranks whose data wait is far above the others' and long enough to matter."""
    waits, steps = _medians(run, "data_wait_s"), _medians(run, "seconds")
    found = []
    for rank, wait in waits.items():
        others = [each for other, each in waits.items() if other != rank]
        if others and wait > LATE * statistics.median(others) and wait > MATTERS * steps[rank]:
            found.append(rank)
    return tuple(found)


def _rows(arm: Arm) -> list[Row]:
    if not arm.counted or arm.config.ranks == 1:
        return []
    run = arm.counted[0]
    late, waits, steps = late_ranks(run), _medians(run, "data_wait_s"), _medians(run, "seconds")
    probe = run.record.probe
    devices = {device.rank: device for device in probe.devices} if probe else {}
    return [
        _row(arm, facts, steps.get(facts.rank), waits.get(facts.rank), devices.get(facts.rank), late=facts.rank in late)
        for facts in run.record.ranks
    ]


def _row(
    arm: Arm, facts: RankFacts, step_s: float | None, wait_s: float | None, device: DeviceProbe | None, *, late: bool
) -> Row:
    return (
        Cell(arm.name),
        Cell(str(facts.rank)),
        Cell(facts.node, f"pod {facts.pod}"),
        Cell(seconds(step_s)),
        Cell(seconds(wait_s), "holds the others up" if late else ""),
        Cell(UNKNOWN if device is None else f"{significant(device.matmul_flops_per_s / 1e12)} TFLOP/s"),
        Cell(NOTHING if device is None else f"{significant(device.to_device_bytes_per_s / 1e9)} GB/s"),
    )


def _medians(run: Run, figure: str) -> dict[int, float]:
    """Over the timed steps of each rank that has any."""
    timed = {rank: _timed(lines) for rank, lines in sorted(run.steps.items())}
    return {rank: statistics.median(getattr(line, figure) for line in own) for rank, own in timed.items() if own}


def _timed(lines: Sequence[StepLine]) -> list[StepLine]:
    return [line for line in lines if line.phase == "timed"]
