"""Connections are evidence only where ranks hold both ends; the clock's parts add up."""

import pytest

from tests.record_factory import one_pod, record_of
from trainer.facts import Stopwatch, between_ranks
from trainer.record import Connection, RankFacts

pytestmark = pytest.mark.torch


def _connection(local: int, remote: int) -> Connection:
    return Connection(local_address=f"127.0.0.1:{local}", remote_address=f"127.0.0.1:{remote}")


def _ranks(*connections: tuple[Connection, ...]) -> list[RankFacts]:
    facts = record_of(one_pod(), "run").ranks
    return [f.model_copy(update={"connections": held}) for f, held in zip(facts, connections, strict=True)]


def test_a_connection_with_a_rank_at_both_ends_stays() -> None:
    first, second = between_ranks(_ranks((_connection(1, 2),), (_connection(2, 1),)))
    assert first.connections == (_connection(1, 2),)
    assert second.connections == (_connection(2, 1),)


def test_a_connection_to_torchrun_s_store_or_to_oneself_goes() -> None:
    itself = (_connection(5, 6), _connection(6, 5))
    first, second = between_ranks(_ranks((_connection(3, 29500), *itself), (_connection(4, 29500),)))
    assert (first.connections, second.connections) == ((), ())


def test_a_part_of_the_clock_holds_what_ran_inside_it() -> None:
    watch = Stopwatch(import_s=3.0)
    with pytest.raises(RuntimeError), watch.part("data_s"):
        raise RuntimeError
    watch.add("warmup_s", 1.0)
    watch.add("warmup_s", 0.5)
    clock = watch.clock()
    assert (clock.import_s, clock.warmup_s, clock.timed_s) == (3.0, 1.5, 0.0)
    assert clock.data_s > 0
