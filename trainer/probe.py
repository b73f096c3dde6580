"""What a dialled link really lets through: bytes sent flat out for a moment, before there is a model.

A link that training doesn't fill can't show by training's bytes that its rate was in force.
"""

import time
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist

from trainer import counters
from trainer.config import TrainConfig
from trainer.distributed import Place
from trainer.facts import gather
from trainer.record import CounterSample, LinkProbe
from trainer.sent import sent_between

REPETITION_S = 0.2
"""One all-reduce at the dialled rate: long enough to outlast the burst that a token bucket lets through."""

MEASURED_S = 0.8
"""About, at the dialled rate; with the first repetition the link is busy for a second."""

LARGEST_BYTES = 64 * 1024 * 1024
"""Of one all-reduce: never the peak of a run's memory. Faster links repeat more often."""

_FLOAT_BYTES = 4


def probe_link(config: TrainConfig, place: Place, device: torch.device) -> LinkProbe | None:
    """Collective: what the pod that sent at the highest rate sent; None where no rate was dialled.

    A machine that couldn't set the named rate has no link of its own for its pods, so nothing to count.
    """
    rate = config.expectations.link_rate_bits_per_s
    if rate is None or config.pods == 1 or place.link_shaping == "unshaped":
        return None
    size = all_reduce_bytes(rate, config.ranks)
    tensor = torch.zeros(size // _FLOAT_BYTES, device=device)
    count = _agreed_count(tensor, ideal_s=all_reduce_s(size, rate, config.ranks))
    own = _measured(lambda: _all_reduce(tensor, count))
    return fastest([LinkProbe.model_validate_json(text) for text in gather(own.model_dump_json())])


def all_reduce_bytes(rate_bits_per_s: float, ranks: int) -> int:
    """Bytes of a tensor whose ring all-reduce takes REPETITION_S at the rate, within LARGEST_BYTES."""
    whole = rate_bits_per_s / 8 * REPETITION_S / _ring_share(ranks)
    return max(_FLOAT_BYTES * ranks, min(LARGEST_BYTES, int(whole)))


def all_reduce_s(size: int, rate_bits_per_s: float, ranks: int) -> float:
    """Seconds of a ring all-reduce at the rate, one neighbour of each rank's ring being across the link."""
    return size * _ring_share(ranks) * 8 / rate_bits_per_s


def repetitions(first_s: float, ideal_s: float) -> int:
    """How often to repeat: about MEASURED_S in all, whether the link is slower or faster than dialled."""
    return max(1, round(MEASURED_S / max(first_s, ideal_s)))


def fastest(probes: Sequence[LinkProbe]) -> LinkProbe:
    """The one of the highest rate: no pod may outrun its link."""
    return max(probes, key=lambda probe: probe.sent_bytes / probe.seconds)


def sent_bytes(first: CounterSample, last: CounterSample) -> int:
    """Bytes that left the pod between two samples; `lo` carries what never leaves it."""
    return sum(sent_between("interface", (first, last)).values())


def _ring_share(ranks: int) -> float:
    """What each rank sends to its neighbour, over the tensor's size (Patarasuk and Yuan 2009)."""
    return 2 * (ranks - 1) / ranks


def _agreed_count(tensor: torch.Tensor, ideal_s: float) -> int:
    """Rank 0's count from a first repetition, which also drains the bursts that a pause has saved up."""
    dist.barrier()
    began = time.perf_counter()
    _all_reduce(tensor, 1)
    count = torch.tensor([repetitions(time.perf_counter() - began, ideal_s)], device=tensor.device)
    dist.broadcast(count, src=0)
    return int(count.item())


def _measured(effect: Callable[[], None]) -> LinkProbe:
    dist.barrier()
    first, began = counters.sample(0), time.perf_counter()
    effect()
    dist.barrier()
    seconds = time.perf_counter() - began
    return LinkProbe(sent_bytes=sent_bytes(first, counters.sample(0)), seconds=seconds)


def _all_reduce(tensor: torch.Tensor, count: int) -> None:
    for _ in range(count):
        dist.all_reduce(tensor)
    if tensor.is_cuda:
        torch.cuda.synchronize()
