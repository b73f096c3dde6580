"""The probe: what links, copies and matrix units of the run's own ranks give, before step 1."""

import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from trainer import counters
from trainer.bandwidth import ring_bytes_per_s, slow_ones
from trainer.config import TrainConfig
from trainer.distributed import Place
from trainer.facts import gather
from trainer.record import CounterSample, DeviceProbe, Probe
from trainer.sweep import exchange, rank_groups, sweep

SWEEPS, PAIRS, MATMUL, COPIES = 0.6, 0.2, 0.1, 0.05
"""Shares of the probe's seconds; copies go both ways."""

MATMUL_SIDE = {"cpu": 256, "cuda": 8192}
COPY_BYTES = {"cpu": 2**22, "cuda": 2**28}
MOST_CALLS = 30


def probe_ranks(config: TrainConfig, place: Place, device: torch.device) -> Probe | None:
    """Collective: about `config.probe_s` seconds; None where the config asks for none."""
    if not config.probe_s:
        return None
    began = time.perf_counter()
    spots = [(int(pod), node) for pod, _, node in (t.partition(" ") for t in gather(f"{place.pod} {place.node}"))]
    first = _sample()
    groups = rank_groups(spots)
    sweeps = tuple(sweep(each, device, SWEEPS * config.probe_s / len(groups)) for each in groups)
    last = _sample()
    rate = (ring_bytes_per_s(sweeps[-1]) if sweeps else None) or 0.0
    pairs = exchange(spots, device, PAIRS * config.probe_s, rate) if len(spots) > 1 else []
    own = _device(place.rank, device, config.probe_s)
    devices = [DeviceProbe.model_validate_json(text) for text in gather(own.model_dump_json())]
    probe = Probe(
        seconds=time.perf_counter() - began,
        sweeps=sweeps,
        pairs=tuple(pairs),
        devices=tuple(devices),
        pods=_of_pods(place, first, last),
    )
    if place.rank == 0:
        print("\n".join(said(config, probe)), flush=True)
    if device.type == "cuda":
        # Its buffers are no part of the run's peak.
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    return probe


def said(config: TrainConfig, probe: Probe) -> list[str]:
    """The probe in a few plain lines."""
    lines = [f"probe: {probe.seconds:.1f} s"]
    for each in probe.sweeps:
        rate, largest = (ring_bytes_per_s(each) or 0.0) / 1e9, max(point.size_bytes for point in each.points)
        lines.append(
            f"probe: {each.link_class}, {each.groups} x {each.ranks} ranks: {rate:.3g} GB/s, messages to "
            f"{largest / 1e6:.3g} MB"
        )
    return [*lines, *(f"probe: slow: {sentence}" for sentence in slow_ones(probe, config.backend))]


def _sample() -> CounterSample:
    dist.barrier()
    taken = counters.sample(0)
    dist.barrier()
    return taken


def _of_pods(
    place: Place, first: CounterSample, last: CounterSample
) -> tuple[tuple[CounterSample, CounterSample], ...]:
    """One rank speaks for its pod: all ranks of a pod see the same devices."""
    own = f"{first.model_dump_json()}\n{last.model_dump_json()}" if place.local_rank == 0 else ""
    told = [text.split("\n") for text in gather(own) if text]
    return tuple((CounterSample.model_validate_json(a), CounterSample.model_validate_json(b)) for a, b in told)


def _device(rank: int, device: torch.device, probe_s: float) -> DeviceProbe:
    """All ranks at once, as in training: GPUs that share an uplink or power show it."""
    side, size = MATMUL_SIDE[device.type], COPY_BYTES[device.type]
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    one, other = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
    host = torch.zeros(size, dtype=torch.uint8, pin_memory=device.type == "cuda")
    there = torch.zeros(size, dtype=torch.uint8, device=device)
    return DeviceProbe(
        rank=rank,
        matmul_flops_per_s=2 * side**3 * _rate(lambda: one @ other, device, MATMUL * probe_s),
        to_device_bytes_per_s=size * _rate(lambda: there.copy_(host), device, COPIES * probe_s),
        to_host_bytes_per_s=size * _rate(lambda: host.copy_(there), device, COPIES * probe_s),
    )


def _rate(call: Callable[[], object], device: torch.device, budget_s: float) -> float:
    """Calls a second, after one that warms up."""
    dist.barrier()
    first_s = max(_seconds(call, device, 1), 1e-6)
    calls = max(1, min(MOST_CALLS, int(budget_s / first_s)))
    return calls / _seconds(call, device, calls)


def _seconds(call: Callable[[], object], device: torch.device, calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        call()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began
