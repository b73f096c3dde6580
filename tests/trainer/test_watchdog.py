"""A run that goes on no more is ended within its patience, and the rank that holds the others up is named."""

import signal
from pathlib import Path

import pytest

from tests.trainer.launching import Started, tiny_config
from trainer.watchdog import Word, verdict_on

pytestmark = pytest.mark.torch


def word(rank: int, collectives: int, where: str = "torch/x.py:1 in all_reduce", step: int = 7) -> Word:
    return Word(rank=rank, step=step, collectives=collectives, last="gloo:all_reduce", where=where)


def test_a_rank_that_left_no_word_is_the_one() -> None:
    hang = verdict_on({0: word(0, 40), 2: word(2, 40)}, 3, 61.0)
    assert hang.ranks == (1,)
    assert hang.sentence == (
        "rank 1 gave no sign of life for 61 s in step 7; "
        "rank 0 waits in collective 40 (gloo:all_reduce) at torch/x.py:1 in all_reduce"
    )


def test_a_rank_that_began_fewer_collectives_is_named_with_its_last_one_and_its_place() -> None:
    hang = verdict_on({0: word(0, 40), 1: word(1, 39, "trainer/feed.py:61 in __getitem__")}, 2, 61.0)
    assert hang.ranks == (1,)
    assert hang.sentence == (
        "rank 1 hung for 61 s in step 7 at trainer/feed.py:61 in __getitem__, after collective 39 (gloo:all_reduce); "
        "rank 0 waits in collective 40 (gloo:all_reduce) at torch/x.py:1 in all_reduce"
    )


def test_where_all_are_in_the_same_collective_nobody_is_blamed() -> None:
    hang = verdict_on({0: word(0, 40), 1: word(1, 40)}, 2, 61.0)
    assert hang.ranks == ()
    assert hang.sentence.startswith("no rank went on for 61 s in step 7: all are in collective 40, rank 0 waits in")


@pytest.mark.parametrize("stopped", [0, 1])
def test_a_stopped_rank_ends_the_run_with_a_record_that_names_it(stopped: int, tmp_path: Path, cache: Path) -> None:
    config = tiny_config(steps=100_000, hang_s=4.0)
    quick = {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "5"}
    started = Started(config, tmp_path, cache, environment=quick)
    started.signal_rank(stopped, after_step=5, number=signal.SIGSTOP)
    ended = started.wait()
    assert ended.exit_code != 0
    record = ended.record
    assert (record.status, record.verdict.outcome) == ("hung", "INVALID")
    assert record.hang is not None
    assert record.hang.ranks == (stopped,)
    assert f"rank {stopped} gave no sign of life for" in ended.output
    assert record.hang.sentence in record.verdict.reasons
    assert record.hang.step > 5
