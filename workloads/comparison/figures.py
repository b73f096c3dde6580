"""From a comparison to the figures of each arm: what the page, the Markdown and the plots all show."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from trainer.config import ExpectedBytes, PredictedRun, Rental
from trainer.contract import LINK_CLASSES
from trainer.record import Clock, Outcome, RankFacts, Summary
from workloads.comparison.compare import Arm, Comparison
from workloads.comparison.records import Run
from workloads.comparison.statistics import Interval

T = TypeVar("T")

CLOCK_PARTS: Mapping[str, tuple[str, ...]] = {
    "imports": ("import_s",),
    "rendezvous and probe": ("rendezvous_s", "probe_s"),
    "data and model": ("data_s", "model_s"),
    "warm-up steps": ("warmup_s",),
    "timed steps": ("timed_s",),
    "checkpoints and evaluation": ("checkpoint_s", "evaluation_s"),
    "own bookkeeping": ("bookkeeping_s",),
}
"""Parts of a rank's wall time, in the order in which they happen."""


@dataclass(frozen=True, kw_only=True)
class LinkEvidence:
    """What one link class of an arm showed, over all its runs."""

    link_class: str
    pairs: int
    expected: tuple[str, ...]
    seen: Mapping[str, int]
    """Transport to directed pairs of ranks."""
    example: str
    """One path in the evidence's own words."""


@dataclass(frozen=True, kw_only=True)
class ArmFigures:
    """One row of the report. None: not known, or not shown because no run of the arm counts."""

    name: str
    topology: str
    machine: str
    pods: int
    ranks_per_pod: int
    outcome: Outcome
    reasons: tuple[str, ...]
    runs: int
    runs_counted: int
    is_baseline: bool
    step_s: float | None
    step_s_p10: float | None
    step_s_p90: float | None
    ratio: Interval | None
    real_tokens_per_s: float | None
    padded_slots_per_s: float | None
    mfu: float | None
    data_wait_share: float | None
    link_rate_bits_per_s: float | None
    sent_bytes: float | None
    """Measured, per pod and step."""
    expected_bytes: ExpectedBytes | None
    wire_s: float | None
    """Seconds that the dialled link needs for one pod's bytes of a step."""
    predicted: PredictedRun | None
    """As the record says it was predicted; None where repeats were predicted differently."""
    nodes: int
    rental: Rental | None
    """None where repeats were rented differently: no one price is theirs."""
    usd_per_1000_steps: float | None
    usd_per_million_real_tokens: float | None
    clock_s: Mapping[str, float]
    links: tuple[LinkEvidence, ...]


def figures(comparison: Comparison) -> tuple[ArmFigures, ...]:
    """One row an arm, in the comparison's order."""
    return tuple(_arm_figures(arm, comparison) for arm in comparison.arms)


def sent_allowed(expected: ExpectedBytes) -> tuple[float, float]:
    """The bytes per pod and step between which the verdict accepts the counters."""
    room = expected.relative_tolerance * expected.per_pod_and_step + expected.absolute_tolerance_per_step
    return max(0.0, expected.per_pod_and_step - room), expected.per_pod_and_step + room


def links_of(arm: Arm) -> tuple[LinkEvidence, ...]:
    """What each link class of an arm was to show and did, over all its runs."""
    seen: dict[str, dict[str, set[tuple[int, int]]]] = defaultdict(lambda: defaultdict(set))
    examples: dict[str, str] = {}
    for run in arm.runs:
        for each in run.record.transports:
            seen[each.link_class][each.transport].add((each.from_rank, each.to_rank))
            examples.setdefault(each.link_class, each.detail)
    expected = {link.link_class: link for link in arm.config.expectations.links}
    return tuple(
        LinkEvidence(
            link_class=name,
            pairs=expected[name].pairs if name in expected else 0,
            expected=expected[name].expected if name in expected else (),
            seen={transport: len(pairs) for transport, pairs in sorted(seen[name].items())},
            example=examples.get(name, ""),
        )
        for name in LINK_CLASSES
        if name in seen or (name in expected and expected[name].pairs)
    )


def _arm_figures(arm: Arm, comparison: Comparison) -> ArmFigures:
    config, expectations = arm.config, arm.config.expectations
    step_s = comparison.typical_step_s.get(arm.name)
    sent = _typical(arm, lambda summary: summary.sent_bytes_per_pod_and_step)
    rate = expectations.link_rate_bits_per_s
    real = _typical(arm, lambda summary: summary.real_tokens_per_s)
    slots = _typical(arm, lambda summary: summary.slots_per_s)
    rental = _one_of([run.record.config.rental for run in arm.runs])
    usd_per_hour = None if rental is None else rental.usd_per_node_hour
    usd_per_s = None if usd_per_hour is None else usd_per_hour * expectations.nodes / 3600
    return ArmFigures(
        name=arm.name,
        topology=config.topology,
        machine=config.machine,
        pods=config.pods,
        ranks_per_pod=config.ranks_per_pod,
        outcome=arm.outcome,
        reasons=_reasons(arm),
        runs=len(arm.runs),
        runs_counted=len(arm.counted),
        is_baseline=comparison.baseline is not None and arm.name == comparison.baseline.name,
        step_s=step_s,
        step_s_p10=_typical(arm, lambda summary: summary.step_s_p10),
        step_s_p90=_typical(arm, lambda summary: summary.step_s_p90),
        ratio=comparison.ratios.get(arm.name),
        real_tokens_per_s=real,
        padded_slots_per_s=None if slots is None or real is None else slots - real,
        mfu=_typical(arm, lambda summary: summary.mfu),
        data_wait_share=_typical(arm, lambda summary: summary.data_wait_share),
        link_rate_bits_per_s=rate,
        sent_bytes=sent,
        expected_bytes=expectations.bytes_sent,
        wire_s=None if sent is None or rate is None else sent * 8 / rate,
        predicted=None if config.command else _one_of([run.record.config.predicted for run in arm.runs]),
        nodes=expectations.nodes,
        rental=rental,
        usd_per_1000_steps=None if usd_per_s is None or step_s is None else usd_per_s * step_s * 1000,
        usd_per_million_real_tokens=None if usd_per_s is None or not real else usd_per_s / real * 1e6,
        clock_s=_clock(arm.counted or arm.runs),
        links=links_of(arm),
    )


def _typical(arm: Arm, figure: Callable[[Summary], float | None]) -> float | None:
    known = [value for run in arm.counted if (value := figure(run.record.summary)) is not None]
    return statistics.median(known) if known else None


def _one_of(values: Sequence[T]) -> T | None:
    """The value that all share."""
    return values[0] if all(value == values[0] for value in values) else None


def _reasons(arm: Arm) -> tuple[str, ...]:
    """Of all runs; where an arm was repeated each reason names its run."""
    several = len(arm.runs) > 1
    return tuple(
        f"{run.record.run_id}: {reason}" if several else reason
        for run in arm.runs
        for reason in run.record.verdict.reasons
    )


def _clock(runs: Sequence[Run]) -> dict[str, float]:
    """Seconds, mean over ranks and runs; parts that took no time are left out."""
    clocks = [facts.clock for run in runs for facts in run.record.ranks]
    means = {name: _mean_of(clocks, fields) for name, fields in CLOCK_PARTS.items()} if clocks else {}
    return {name: value for name, value in means.items() if value > 0}


def _mean_of(clocks: Sequence[Clock], fields: Sequence[str]) -> float:
    return statistics.fmean(sum(getattr(clock, field) for field in fields) for clock in clocks)


def devices(ranks: Sequence[RankFacts]) -> str:
    """The accelerators of a run, by name."""
    names = sorted({facts.device.name for facts in ranks if facts.device is not None})
    return ", ".join(names) or "none (CPU)"
