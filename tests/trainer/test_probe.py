"""The probe's size, its share of the wire and its end follow from the dialled rate."""

import pytest

from trainer.probe import (
    LARGEST_BYTES,
    REPETITION_S,
    all_reduce_bytes,
    all_reduce_s,
    fastest,
    repetitions,
    sent_bytes,
)
from trainer.record import CounterSample, InterfaceBytes, LinkProbe

pytestmark = pytest.mark.torch

SLOW, FAST = 50e6, 25e9


def test_one_all_reduce_of_two_ranks_over_50_mbit_is_a_fifth_of_a_second() -> None:
    size = all_reduce_bytes(SLOW, ranks=2)
    assert size == 1_250_000
    assert all_reduce_s(size, SLOW, ranks=2) == pytest.approx(REPETITION_S)


def test_four_ranks_send_half_as_much_again_for_the_same_tensor() -> None:
    assert all_reduce_bytes(SLOW, ranks=4) == pytest.approx(all_reduce_bytes(SLOW, ranks=2) / 1.5, abs=1)


@pytest.mark.parametrize("rate", [SLOW, 1e9, FAST])
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_the_probe_takes_a_second_at_most_on_the_link_that_was_dialled(rate: float, ranks: int) -> None:
    ideal_s = all_reduce_s(all_reduce_bytes(rate, ranks), rate, ranks)
    total_s = ideal_s * (1 + repetitions(ideal_s, ideal_s))
    assert 0.7 < total_s < 1.01


def test_a_fast_link_repeats_instead_of_taking_more_memory() -> None:
    size = all_reduce_bytes(FAST, ranks=2)
    assert size == LARGEST_BYTES
    assert repetitions(0.01, all_reduce_s(size, FAST, ranks=2)) > 30


def test_a_link_faster_than_dialled_is_repeated_no_more_often_and_a_slow_one_once() -> None:
    assert repetitions(first_s=0.001, ideal_s=0.2) == 4
    assert repetitions(first_s=30.0, ideal_s=0.2) == 1


def test_the_pod_of_the_highest_rate_speaks_for_the_link() -> None:
    slow, fast = LinkProbe(sent_bytes=900, seconds=1.0), LinkProbe(sent_bytes=800, seconds=0.5)
    assert fastest([slow, fast]) == fast


def test_bytes_of_lo_and_of_devices_that_came_or_went_are_not_sent_over_the_link() -> None:
    def sample(**sent: int) -> CounterSample:
        rows = (InterfaceBytes(name=n, kind="interface", sent=s, received=0) for n, s in sent.items())
        return CounterSample(after_step=0, unix_s=0.0, interfaces=tuple(rows))

    assert sent_bytes(sample(lo=1, eth0=10, eth1=5), sample(lo=900, eth0=110, eth2=70)) == 100
