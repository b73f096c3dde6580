"""From the probes of an arm's runs to its figures: what the page of probe-only runs, and its plots, show."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from trainer.bandwidth import COLLECTIVES, bus_bytes_per_s, pair_bytes_per_s, slow_ones, whole_sweep
from trainer.config import PredictedRange
from trainer.contract import LinkClass
from trainer.record import Collective, DeviceProbe, Outcome, PairProbe, Probe, Sweep
from workloads.comparison.compare import Arm
from workloads.comparison.figures import LinkEvidence, links_of
from workloads.planning.prediction import Range
from workloads.planning.probing import step_as_probed

Curve = dict[int, float]
"""Message size in bytes to bus bandwidth in bytes a second, ascending; median over runs."""


@dataclass(frozen=True, kw_only=True)
class LinkFigures:
    """The sweep of one link class."""

    link_class: LinkClass
    ranks: int
    groups: int
    curves: Mapping[Collective, Curve]
    smallest_s: float | None
    """Seconds of the smallest all-reduce: what a call costs whatever it carries."""

    def large(self, collective: Collective) -> float | None:
        """The bus bandwidth of the collective's largest message, as in `trainer.bandwidth.ring_bytes_per_s`."""
        return next(reversed(self.curves[collective].values()), None)

    @property
    def ring_bytes_per_s(self) -> float | None:
        """Of the best collective."""
        return max((large for name in self.curves if (large := self.large(name))), default=None)


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Lowest, median and highest of a figure over pairs or ranks and runs."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, kw_only=True)
class ProbeFigures:
    """One arm of probed runs."""

    name: str
    topology: str
    pods: int
    outcome: Outcome
    reasons: tuple[str, ...]
    runs: int
    rate_bits_per_s: float | None
    links: tuple[LinkFigures, ...]
    """From the narrowest to all ranks; empty where no run counts, or for one rank."""
    evidence: tuple[LinkEvidence, ...]
    pairs: Mapping[LinkClass, Spread]
    """Bytes a second each way."""
    matmul_flops_per_s: Spread | None
    to_device_bytes_per_s: Spread | None
    to_host_bytes_per_s: Spread | None
    slow: tuple[str, ...]
    predicted_step_s: PredictedRange | None
    """Of the run that the plan states, with assumed rates; None where the repeats were predicted differently."""
    probed_step_s: Range | None
    """The same with the measured ring."""

    @property
    def ring_bytes_per_s(self) -> float | None:
        """What a ring over all ranks reached."""
        return self.links[-1].ring_bytes_per_s if self.links else None


def probe_figures(arm: Arm) -> ProbeFigures:
    """Figures of the runs that are not INVALID; reasons and evidence of all."""
    counted = [run for run in arm.runs if run.record.verdict.outcome != "INVALID"]
    probes = [run.record.probe for run in counted if run.record.probe is not None]
    outcomes = {run.record.verdict.outcome for run in counted}
    links = _links(probes)
    ring = links[-1].ring_bytes_per_s if links else None
    predicted = {run.record.config.predicted.step_s for run in arm.runs}
    return ProbeFigures(
        name=arm.name,
        topology=arm.config.topology,
        pods=arm.config.pods,
        outcome="INVALID" if not outcomes else "UNPROVEN" if "UNPROVEN" in outcomes else "VALID",
        reasons=tuple(dict.fromkeys(reason for run in arm.runs for reason in run.record.verdict.reasons)),
        runs=len(arm.runs),
        rate_bits_per_s=arm.config.expectations.link_rate_bits_per_s,
        links=links,
        evidence=links_of(arm),
        pairs=_pairs(probes),
        matmul_flops_per_s=_of_devices(probes, lambda device: device.matmul_flops_per_s),
        to_device_bytes_per_s=_of_devices(probes, lambda device: device.to_device_bytes_per_s),
        to_host_bytes_per_s=_of_devices(probes, lambda device: device.to_host_bytes_per_s),
        slow=tuple(dict.fromkeys(each for probe in probes for each in slow_ones(probe, arm.config.backend))),
        predicted_step_s=predicted.pop() if len(predicted) == 1 else None,
        probed_step_s=None if ring is None else step_as_probed(arm.config, ring),
    )


def _links(probes: Sequence[Probe]) -> tuple[LinkFigures, ...]:
    if not probes or whole_sweep(probes[0]) is None:
        return ()
    return tuple(_link([probe.sweeps[number] for probe in probes]) for number in range(len(probes[0].sweeps)))


def _link(sweeps: Sequence[Sweep]) -> LinkFigures:
    first = sweeps[0]
    curves = {name: _curve(sweeps, name) for name in COLLECTIVES}
    smallest = [min((p for p in s.points if p.collective == "all-reduce"), key=lambda p: p.size_bytes) for s in sweeps]
    return LinkFigures(
        link_class=first.link_class,
        ranks=first.ranks,
        groups=first.groups,
        curves=curves,
        smallest_s=statistics.median(point.seconds for point in smallest),
    )


def _curve(sweeps: Sequence[Sweep], name: Collective) -> Curve:
    found: dict[int, list[float]] = defaultdict(list)
    for each in sweeps:
        for point in each.points:
            if point.collective == name:
                found[point.size_bytes].append(bus_bytes_per_s(point, each.ranks))
    return {size: statistics.median(found[size]) for size in sorted(found)}


def _pairs(probes: Sequence[Probe]) -> dict[LinkClass, Spread]:
    found: dict[LinkClass, list[PairProbe]] = defaultdict(list)
    for probe in probes:
        for pair in probe.pairs:
            found[pair.link_class].append(pair)
    return {name: _spread([pair_bytes_per_s(pair) for pair in pairs]) for name, pairs in sorted(found.items())}


def _of_devices(probes: Sequence[Probe], figure: Callable[[DeviceProbe], float]) -> Spread | None:
    values = [figure(device) for probe in probes for device in probe.devices]
    return _spread(values) if values else None


def _spread(values: Sequence[float]) -> Spread:
    return Spread(low=min(values), median=statistics.median(values), high=max(values))
