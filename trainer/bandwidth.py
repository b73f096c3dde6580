"""What a probe's seconds say: bandwidths, and which GPU, pair or pod is slower than its like. Pure."""

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from trainer.contract import Backend
from trainer.record import Collective, PairProbe, Probe, Sweep, SweepPoint
from trainer.sent import Kind, sent_between

COLLECTIVES: tuple[Collective, ...] = ("all-reduce", "all-gather", "reduce-scatter")

SLOW_BELOW: Mapping[Backend, float] = {"nccl": 0.9, "gloo": 0.5}
"""Of the median of the others. GPUs of one kind agree within 5%; cores that are shared with the machine's other work
scatter far more."""

SLOW_PAIR_BELOW = 0.5
"""Pairs of a round share links, so they scatter more than GPUs; a network card at half its rate still shows."""

LEAST_SENT = 0.8
"""Of what the sweep over all ranks must have sent, by the count of its calls."""


def ring_share(collective: Collective, ranks: int) -> float:
    """What one rank sends to its neighbour in a ring, over the tensor's size (nccl-tests, doc/PERFORMANCE.md)."""
    return (2 if collective == "all-reduce" else 1) * (ranks - 1) / ranks


def bus_bytes_per_s(point: SweepPoint, ranks: int) -> float:
    """nccl-tests' bus bandwidth: what each link of a ring carries, so that it can be held against the link's rate."""
    return point.size_bytes * ring_share(point.collective, ranks) / point.seconds


def ring_bytes_per_s(sweep: Sweep) -> float | None:
    """The bus bandwidth of the best collective at its largest message; None where the sweep is empty.

    Not the highest point: a message that fits a cache, or a token bucket's burst, outruns the link.
    """
    largest = {point.collective: point for point in sorted(sweep.points, key=lambda point: point.size_bytes)}
    return max((bus_bytes_per_s(point, sweep.ranks) for point in largest.values()), default=None)


def whole_sweep(probe: Probe) -> Sweep | None:
    """The sweep over all ranks: its ring crosses the slowest link class. None for one rank."""
    return probe.sweeps[-1] if probe.sweeps else None


def pair_bytes_per_s(pair: PairProbe) -> float:
    """Each way, both at once."""
    return pair.size_bytes / pair.seconds


def slow_ones(probe: Probe, backend: Backend) -> tuple[str, ...]:
    """Sentences that name a GPU, a pair or a rank's link that is slow beside its like."""
    return (*_slow_devices(probe, backend), *_slow_pairs(probe))


def unsent(probe: Probe, kind: Kind) -> Iterator[str]:
    """Pods whose counters saw less than the sweep over all ranks must have sent; pods without counters say nothing."""
    least = LEAST_SENT * least_sent_bytes(probe)
    for pod, ends in enumerate(probe.pods):
        counted = sent_between(kind, ends)
        if counted and sum(counted.values()) < least:
            yield (
                f"pod {pod} sent {sum(counted.values()) / 1e6:.3f} MB by its {kind} counters during the probe, which "
                f"must have sent at least {least / 1e6:.3f} MB: something else carried it"
            )


def least_sent_bytes(probe: Probe) -> float:
    """What must have left each pod, whatever the algorithm: the others' parts, once a call and once to warm up."""
    whole = whole_sweep(probe)
    if whole is None:
        return 0.0
    share = (whole.ranks - 1) / whole.ranks
    return sum((point.calls + 1) * point.size_bytes * share for point in whole.points)


def _slow_devices(probe: Probe, backend: Backend) -> Iterator[str]:
    figures = (
        ("multiplies matrices at", "TFLOP/s", 1e12, [d.matmul_flops_per_s for d in probe.devices]),
        ("copies from the host at", "GB/s", 1e9, [d.to_device_bytes_per_s for d in probe.devices]),
        ("copies to the host at", "GB/s", 1e9, [d.to_host_bytes_per_s for d in probe.devices]),
    )
    for what, unit, scale, values in figures:
        for index, value in enumerate(values):
            others = _median([*values[:index], *values[index + 1 :]])
            if others is not None and value < SLOW_BELOW[backend] * others:
                yield (
                    f"rank {probe.devices[index].rank} {what} {value / scale:.3g} {unit}, the others' median is "
                    f"{others / scale:.3g}"
                )


def _slow_pairs(probe: Probe) -> Iterator[str]:
    """A rank all of whose pairs of a class are slow has a slow link itself; else the pair is named."""
    for link_class in sorted({pair.link_class for pair in probe.pairs}):
        pairs = [pair for pair in probe.pairs if pair.link_class == link_class]
        slow = [pair for pair in pairs if _is_slow(pair, pairs)]
        guilty = [rank for rank, own in _by_rank(pairs).items() if len(own) > 1 and all(pair in slow for pair in own)]
        for rank in guilty:
            best = max(pair_bytes_per_s(pair) for pair in _by_rank(pairs)[rank]) / 1e9
            yield f"{link_class}: all pairs of rank {rank} are slow ({best:.3g} GB/s each way at best): its own link"
        for pair in slow:
            if not {pair.one, pair.other} & set(guilty):
                rate = pair_bytes_per_s(pair) / 1e9
                yield f"{link_class}: ranks {pair.one} and {pair.other} exchange {rate:.3g} GB/s each way"


def _is_slow(pair: PairProbe, pairs: Sequence[PairProbe]) -> bool:
    others = _median([pair_bytes_per_s(each) for each in pairs if each is not pair])
    return others is not None and pair_bytes_per_s(pair) < SLOW_PAIR_BELOW * others


def _by_rank(pairs: Sequence[PairProbe]) -> dict[int, list[PairProbe]]:
    found: dict[int, list[PairProbe]] = defaultdict(list)
    for pair in pairs:
        found[pair.one].append(pair)
        found[pair.other].append(pair)
    return dict(sorted(found.items()))


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None
