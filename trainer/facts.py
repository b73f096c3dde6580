"""Each rank's own view of the run, and how the ranks put their views together."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
import torch.distributed as dist

from trainer import counters, hardware, publish
from trainer.config import TrainConfig
from trainer.distributed import Place
from trainer.nccl_log import parse
from trainer.record import Clock, Connection, CounterSample, RankFacts, Transport
from trainer.transports import transports

_T = TypeVar("_T")


class Stopwatch:
    """Seconds of the parts of one rank's clock; the parts don't overlap."""

    def __init__(self, import_s: float) -> None:
        self._parts = dict.fromkeys(Clock.model_fields, 0.0) | {"import_s": import_s}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time what happens inside as this part."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - began)

    def add(self, name: str, seconds: float) -> None:
        """Add seconds to a part."""
        assert name in self._parts, name
        self._parts[name] += seconds

    def clock(self) -> Clock:
        """As the record holds it."""
        return Clock(**self._parts)


def own_facts(
    place: Place,
    clock: Clock,
    connections: tuple[Connection, ...],
    samples: Sequence[CounterSample],
) -> RankFacts:
    """What this rank sees now."""
    allocated, reserved = hardware.peak_gpu_bytes()
    return RankFacts(
        rank=place.rank,
        local_rank=place.local_rank,
        pod=place.pod,
        hostname=place.hostname,
        node=place.node,
        addresses=counters.addresses(),
        device=hardware.device(place.local_rank),
        efa_devices=counters.efa_devices(),
        nccl_nics_found=nics_found(publish.nccl_text(place)),
        connections=connections,
        counters=tuple(samples),
        peak_allocated_bytes=allocated,
        peak_reserved_bytes=reserved,
        peak_resident_bytes=hardware.peak_resident_bytes(),
        omp_threads=torch.get_num_threads(),
        clock=clock,
    )


def nics_found(nccl_text: str) -> int | None:
    """NICs that NCCL's network plugin says it found; None where the log has no such line or can't be read."""
    return _read("NCCL's log", lambda: parse(nccl_text).nics_found, None)


def transports_seen(
    config: TrainConfig, ranks: Sequence[RankFacts], nccl_logs: Mapping[int, str]
) -> tuple[Transport, ...]:
    """What the pairs of ranks used; none where the evidence can't be read, which proves nothing."""
    return _read("the evidence of transports", lambda: transports(config, ranks, nccl_logs), ())


def gather_facts(own: RankFacts) -> tuple[RankFacts, ...]:
    """The facts of all ranks, in order, on every rank; connections only where both ends are ranks."""
    return between_ranks([RankFacts.model_validate_json(text) for text in gather(own.model_dump_json())])


def gather(text: str) -> list[str]:
    """One text of each rank, on every rank."""
    texts: list[str | None] = [None] * dist.get_world_size()
    dist.all_gather_object(texts, text)
    return [each for each in texts if each is not None]


def between_ranks(ranks: Sequence[RankFacts]) -> tuple[RankFacts, ...]:
    """Drop connections that no other rank holds the other end of: torchrun's store, log shipping."""
    held = {(c.local_address, c.remote_address): f.rank for f in ranks for c in f.connections}

    def kept(facts: RankFacts) -> tuple[Connection, ...]:
        mirrored = ((c, held.get((c.remote_address, c.local_address), facts.rank)) for c in facts.connections)
        return tuple(connection for connection, peer in mirrored if peer != facts.rank)

    return tuple(facts.model_copy(update={"connections": kept(facts)}) for facts in ranks)


def _read(what: str, reader: Callable[[], _T], otherwise: _T) -> _T:
    """Evidence that its reader fails on is missing evidence: a finished run is never lost for it."""
    try:
        return reader()
    except Exception as error:  # a log of any release, cut anywhere
        print(f"{what} can't be read: {error!r}", file=sys.stderr)
        return otherwise
