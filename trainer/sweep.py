"""Collectives over message sizes for each link class, and each pair of ranks: the probe's view of the links.

Rank 0 decides how often a call is repeated and where a sweep ends, because ranks that decide for themselves would
hang each other.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist

from trainer.bandwidth import COLLECTIVES
from trainer.contract import LinkClass
from trainer.facts import gather
from trainer.record import Collective, PairProbe, Sweep, SweepPoint

SMALLEST_BYTES, GROWTH = 4096, 4
LARGEST_BYTES = {"cpu": 2**24, "cuda": 2**29}
"""Of a tensor; a sweep ends before it where its time does."""
MOST_CALLS = 20
PAIR_BYTES = {"cpu": (2**14, 2**22), "cuda": (2**20, 2**26)}
"""Smallest and largest message that a pair exchanges."""
PAIR_CALLS = 2

_FLOAT_BYTES = 4

Spot = tuple[int, str]
"""Pod and node of a rank."""


@dataclass(frozen=True)
class RankGroups:
    """Groups that cover all ranks and do the same at once; a ring through each crosses links of this class."""

    link_class: LinkClass
    groups: tuple[tuple[int, ...], ...]


def rank_groups(spots: Sequence[Spot]) -> tuple[RankGroups, ...]:
    """From the narrowest to all ranks; one that would equal the next is left out."""
    if len(spots) == 1:
        return ()
    by_pod, by_node = _grouped([pod for pod, _ in spots]), _grouped([node for _, node in spots])
    found = []
    if len(by_pod) > 1 and all(len(group) > 1 for group in by_pod):
        found.append(RankGroups("same-pod", by_pod))
    if len(by_node) > 1 and len(by_pod) > len(by_node) and all(len(group) > 1 for group in by_node):
        found.append(RankGroups("same-node", by_node))
    widest: LinkClass = "other-node" if len(by_node) > 1 else "same-node" if len(by_pod) > 1 else "same-pod"
    return (*found, RankGroups(widest, (tuple(range(len(spots))),)))


def rounds_of_pairs(ranks: int) -> Iterator[list[tuple[int, int]]]:
    """Every pair once, in rounds in which each rank has one partner at most (the circle method)."""
    seats: list[int | None] = [*range(ranks), *([None] if ranks % 2 else [])]
    for _ in range(len(seats) - 1):
        halves = zip(seats[: len(seats) // 2], reversed(seats[len(seats) // 2 :]), strict=True)
        yield [(min(a, b), max(a, b)) for a, b in halves if a is not None and b is not None]
        seats = [seats[0], seats[-1], *seats[1:-1]]


def sweep(groups: RankGroups, device: torch.device, budget_s: float) -> Sweep:
    """Collective over all ranks: every collective over growing sizes, in about `budget_s` seconds."""
    own = next(group for group in groups.groups if dist.get_rank() in group)
    with _handle(groups, own) as handle:
        each_s = budget_s / len(COLLECTIVES)
        points = [point for name in COLLECTIVES for point in _points(name, handle, len(own), device, each_s)]
    slowest = tuple(_slowest(points))
    return Sweep(link_class=groups.link_class, ranks=len(own), groups=len(groups.groups), points=slowest)


def exchange(spots: Sequence[Spot], device: torch.device, budget_s: float, bytes_per_s: float) -> list[PairProbe]:
    """Collective: each pair exchanges a message both ways at once; pairs of a round share the links.

    `bytes_per_s`: what a ring reached, equal on all ranks; sizes the message to the budget.
    """
    rounds = list(rounds_of_pairs(len(spots)))
    smallest, largest = PAIR_BYTES[device.type]
    size = int(max(smallest, min(largest, bytes_per_s * budget_s / max(1, len(rounds)) / (PAIR_CALLS + 1))))
    size = size // _FLOAT_BYTES * _FLOAT_BYTES
    mine = {pair: s for pairs in rounds for pair, s in _round(pairs, size, device).items()}
    told = gather(" ".join(f"{one}:{other}:{seconds!r}" for (one, other), seconds in mine.items()))
    slowest: dict[tuple[int, int], float] = {}
    for one, other, seconds in (word.split(":") for text in told for word in text.split()):
        pair = (int(one), int(other))
        slowest[pair] = max(slowest.get(pair, 0.0), float(seconds))
    return [
        PairProbe(one=a, other=b, link_class=class_of(spots[a], spots[b]), size_bytes=size, seconds=seconds)
        for (a, b), seconds in sorted(slowest.items())
    ]


def class_of(one: Spot, other: Spot) -> LinkClass:
    """How two ranks are joined."""
    if one == other:
        return "same-pod"
    return "same-node" if one[1] == other[1] else "other-node"


@contextmanager
def _handle(groups: RankGroups, own: tuple[int, ...]) -> Iterator[dist.ProcessGroup]:
    """This rank's group; a communicator takes memory of each GPU, so one that training doesn't use goes again."""
    if len(groups.groups) == 1 and dist.group.WORLD is not None:
        yield dist.group.WORLD
        return
    made = {group: dist.new_group(list(group)) for group in groups.groups}
    yield made[own]
    dist.barrier()
    dist.destroy_process_group(made[own])


def _grouped(keys: Sequence[object]) -> tuple[tuple[int, ...], ...]:
    found: dict[object, list[int]] = defaultdict(list)
    for rank, key in enumerate(keys):
        found[key].append(rank)
    return tuple(map(tuple, found.values()))


def _points(
    name: Collective, group: dist.ProcessGroup, ranks: int, device: torch.device, budget_s: float
) -> Iterator[SweepPoint]:
    """As this rank timed them; the sizes and calls are rank 0's decision."""
    size, left_s = SMALLEST_BYTES, budget_s
    while size <= LARGEST_BYTES[device.type]:
        elements = max(1, size // _FLOAT_BYTES // ranks) * ranks
        call = _call(name, group, torch.zeros(elements, device=device), ranks)
        first_s = _timed(call, 1)
        sizes_to_come = 2.0 if size * GROWTH <= LARGEST_BYTES[device.type] else 1.0
        calls = _of_rank_0(max(1, min(MOST_CALLS, int(left_s / sizes_to_come / 2 / first_s))), device)
        seconds = _timed(call, calls) / calls
        yield SweepPoint(collective=name, size_bytes=elements * _FLOAT_BYTES, calls=calls, seconds=seconds)
        left_s -= first_s + calls * seconds
        if not _of_rank_0(int(2 * GROWTH * seconds < left_s), device):
            return
        size *= GROWTH


def _call(name: Collective, group: dist.ProcessGroup, whole: torch.Tensor, ranks: int) -> Callable[[], object]:
    part = torch.zeros(whole.numel() // ranks, device=whole.device)
    if name == "all-reduce":
        return lambda: dist.all_reduce(whole, group=group)
    if name == "all-gather":
        return lambda: dist.all_gather_into_tensor(whole, part, group=group)
    return lambda: dist.reduce_scatter_tensor(part, whole, group=group)


def _timed(call: Callable[[], object], calls: int) -> float:
    dist.barrier()
    began = time.perf_counter()
    for _ in range(calls):
        call()
    _wait_for_device()
    return time.perf_counter() - began


def _of_rank_0(number: int, device: torch.device) -> int:
    told = torch.tensor([number], device=device)
    dist.broadcast(told, src=0)
    return int(told.item())


def _slowest(points: Sequence[SweepPoint]) -> Iterator[SweepPoint]:
    """Each point with the seconds of the rank that took longest: the others wait for it."""
    told = [[float(word) for word in text.split()] for text in gather(" ".join(repr(p.seconds) for p in points))]
    for index, point in enumerate(points):
        yield point.model_copy(update={"seconds": max(each[index] for each in told)})


def _round(pairs: Sequence[tuple[int, int]], size: int, device: torch.device) -> dict[tuple[int, int], float]:
    """Seconds of one exchange of this rank's pair; empty where it has none in this round."""
    rank = dist.get_rank()
    own = next((pair for pair in pairs if rank in pair), None)
    if own is None:
        dist.barrier()
        dist.barrier()
        return {}
    peer = own[0] if own[1] == rank else own[1]
    out, into = (torch.zeros(size // _FLOAT_BYTES, device=device) for _ in range(2))

    def both_ways() -> None:
        operations = [dist.P2POp(dist.isend, out, peer), dist.P2POp(dist.irecv, into, peer)]
        for request in dist.batch_isend_irecv(operations):
            request.wait()

    _timed(both_ways, 1)
    return {own: _timed(both_ways, PAIR_CALLS) / PAIR_CALLS}


def _wait_for_device() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
