"""Probes from a few numbers: bandwidths in, the seconds and bytes that a run would have left out."""

from collections.abc import Mapping, Sequence

from trainer.bandwidth import COLLECTIVES, least_sent_bytes, ring_share
from trainer.contract import LinkClass
from trainer.record import CounterSample, DeviceProbe, InterfaceBytes, PairProbe, Probe, Sweep, SweepPoint

SIZES = (4096, 65_536, 1_048_576)
LATENCY_S = 100e-6


def sweep_of(link_class: LinkClass, bus_gb_per_s: float, *, ranks: int = 2, groups: int = 1) -> Sweep:
    """Each collective at three sizes over a link of that rate, with a latency that small messages feel."""
    points = (
        SweepPoint(
            collective=name,
            size_bytes=size,
            calls=5,
            seconds=LATENCY_S + size * ring_share(name, ranks) / (bus_gb_per_s * 1e9),
        )
        for name in COLLECTIVES
        for size in SIZES
    )
    return Sweep(link_class=link_class, ranks=ranks, groups=groups, points=tuple(points))


def probe_of(
    *sweeps: Sweep,
    pairs: Mapping[tuple[int, int], float] | None = None,
    pair_class: LinkClass = "other-node",
    matmul_tflops: Sequence[float] = (1.0, 1.0),
    to_device_gb_per_s: Sequence[float] = (10.0, 10.0),
    sent: Sequence[float] | None = None,
    counter: str = "eth0",
) -> Probe:
    """`pairs`: GB/s each way; `sent`: bytes that each pod's counter saw; None: what the widest sweep sends."""
    bare = Probe(seconds=1.0, sweeps=sweeps, pairs=(), devices=(), pods=())
    counted = [1.2 * least_sent_bytes(bare)] * 2 if sent is None else sent
    exchanged = (
        PairProbe(one=a, other=b, link_class=pair_class, size_bytes=10**6, seconds=1e6 / (rate * 1e9))
        for (a, b), rate in (pairs or {(0, 1): 1.0}).items()
    )
    devices = (
        DeviceProbe(rank=rank, matmul_flops_per_s=t * 1e12, to_device_bytes_per_s=c * 1e9, to_host_bytes_per_s=10e9)
        for rank, (t, c) in enumerate(zip(matmul_tflops, to_device_gb_per_s, strict=True))
    )
    pods = tuple((_sample(counter, 1000), _sample(counter, 1000 + round(each))) for each in counted)
    return bare.model_copy(update={"pairs": tuple(exchanged), "devices": tuple(devices), "pods": pods})


def _sample(counter: str, sent: int) -> CounterSample:
    rows = (
        InterfaceBytes(name="lo", kind="interface", sent=7 * sent, received=0),
        InterfaceBytes(name=counter, kind="interface", sent=sent, received=sent),
    )
    return CounterSample(after_step=0, unix_s=0.0, interfaces=rows)
