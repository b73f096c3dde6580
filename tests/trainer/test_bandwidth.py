"""A probe's seconds become bandwidths, and what is slow beside its like is named."""

import pytest

from tests.probe_factory import LATENCY_S, probe_of, sweep_of
from tests.record_factory import one_pod, two_pods
from tests.trainer.judging import judged, only_reason
from trainer.bandwidth import (
    bus_bytes_per_s,
    least_sent_bytes,
    ring_bytes_per_s,
    ring_share,
    slow_ones,
    whole_sweep,
)

FOUR = {(a, b): 1.0 for a in range(4) for b in range(a + 1, 4)}


@pytest.mark.parametrize("ranks", [2, 4, 16])
def test_bus_bandwidth_is_the_link_s_rate_whatever_the_collective_and_the_ranks(ranks: int) -> None:
    for point in sweep_of("other-node", 5.0, ranks=ranks).points:
        wire_s = point.seconds - LATENCY_S
        assert bus_bytes_per_s(point.model_copy(update={"seconds": wire_s}), ranks) == pytest.approx(5e9)


def test_an_all_reduce_sends_what_reduce_scatter_and_all_gather_send_together() -> None:
    assert ring_share("all-reduce", 4) == ring_share("all-gather", 4) + ring_share("reduce-scatter", 4) == 1.5


def test_the_ring_is_the_largest_message_of_the_widest_sweep() -> None:
    narrow, wide = sweep_of("same-pod", 20.0), sweep_of("other-node", 2.0)
    assert whole_sweep(probe_of(narrow, wide)) == wide
    reached = ring_bytes_per_s(wide)
    assert reached is not None
    assert 1.6e9 < reached < 2e9
    assert whole_sweep(probe_of()) is None


def test_a_burst_that_outruns_the_link_is_not_its_rate() -> None:
    sweep = sweep_of("other-node", 2.0)
    burst = sweep.points[0].model_copy(update={"seconds": 1e-9})
    assert ring_bytes_per_s(sweep.model_copy(update={"points": (burst, *sweep.points[1:])})) == ring_bytes_per_s(sweep)


def test_a_slow_gpu_is_named_by_its_rank() -> None:
    probe = probe_of(matmul_tflops=(700, 710, 600, 705), to_device_gb_per_s=(50, 50, 50, 20))
    assert slow_ones(probe, "nccl") == (
        "rank 2 multiplies matrices at 600 TFLOP/s, the others' median is 705",
        "rank 3 copies from the host at 20 GB/s, the others' median is 50",
    )


def test_shared_cores_may_scatter_more_than_gpus() -> None:
    probe = probe_of(matmul_tflops=(0.6, 1.0))
    assert slow_ones(probe, "gloo") == ()
    assert len(slow_ones(probe, "nccl")) == 1


def test_a_slow_pair_is_named_and_a_rank_all_of_whose_pairs_are_slow_is_its_own_link() -> None:
    one_cable = probe_of(pairs=FOUR | {(1, 3): 0.3})
    assert slow_ones(one_cable, "nccl") == ("other-node: ranks 1 and 3 exchange 0.3 GB/s each way",)
    one_card = probe_of(pairs=FOUR | {(0, 2): 0.3, (1, 2): 0.35, (2, 3): 0.3})
    assert slow_ones(one_card, "nccl") == (
        "other-node: all pairs of rank 2 are slow (0.35 GB/s each way at best): its own link",
    )


def test_equal_ranks_are_not_called_slow() -> None:
    assert slow_ones(probe_of(sweep_of("other-node", 2.0), pairs=FOUR), "nccl") == ()


def test_bytes_that_the_plan_s_counter_did_not_see_make_the_run_invalid() -> None:
    sweep = sweep_of("same-node", 0.006)
    assert judged(two_pods(), ranks_probe=probe_of(sweep)).outcome == "VALID"
    silent = probe_of(sweep, sent=(2 * least_sent_bytes(probe_of(sweep)), 5_000))
    reason = only_reason(judged(two_pods(), ranks_probe=silent), "INVALID")
    assert reason.startswith("pod 1 sent 0.005 MB by its interface counters during the probe, which must have sent at")


def test_a_pod_without_that_counter_and_a_run_of_one_pod_prove_nothing() -> None:
    sweep = sweep_of("same-pod", 1.0)
    assert judged(two_pods(), ranks_probe=probe_of(sweep, counter="lo", sent=(0, 0))).outcome == "VALID"
    assert judged(one_pod(), ranks_probe=probe_of(sweep, sent=(0, 0))).outcome == "VALID"


def test_a_probe_that_was_asked_for_and_is_absent_leaves_the_run_unproven() -> None:
    made = two_pods(config={"probe_s": 1.0})
    assert only_reason(judged(made), "UNPROVEN") == "the run was to be probed and left no probe"


def test_a_probe_only_run_owes_no_step() -> None:
    made = two_pods(config={"steps": 0, "warmup_steps": 0, "probe_s": 1.0})
    none: dict[int, list[object]] = {0: [], 1: []}
    verdict = judged(made, steps=none, ranks_probe=probe_of(sweep_of("same-node", 0.006)))  # type: ignore[arg-type]
    assert (verdict.outcome, verdict.reasons) == ("VALID", ())
