"""Connections are evidence only where ranks hold both ends; the clock's parts add up."""

import pytest

from tests.record_factory import one_pod, record_of
from trainer import facts
from trainer.facts import Stopwatch, between_ranks, nics_found, transports_seen
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


def test_nics_are_what_nccl_s_plugin_says_it_found() -> None:
    line = "p-0:7:9 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 4 nics)\n"
    assert nics_found(line) == 4
    assert nics_found("p-0:7:9 [0] NCCL INFO Using network Socket\n") is None


def test_evidence_that_its_reader_fails_on_is_missing_evidence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(facts, "parse", fails)
    monkeypatch.setattr(facts, "transports", fails)
    record = record_of(one_pod(), "run")
    assert nics_found("nics)") is None
    assert transports_seen(record.config, record.ranks, {0: "nics)"}) == ()
    assert "NCCL's log can't be read: IndexError('list index out of range')" in capsys.readouterr().err
