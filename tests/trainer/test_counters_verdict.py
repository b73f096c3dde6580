"""Counters and the probe show the bytes and the rate that were planned."""

from typing import Any

import pytest

from tests.record_factory import (
    config_of,
    efa_nodes,
    facts_of,
    one_pod,
    two_pods,
)
from tests.trainer.judging import judged, only_reason
from trainer.record import CounterSample, LinkProbe, RankFacts


def with_last_counters(facts: RankFacts, **changes: Any) -> RankFacts:
    first, last = facts.counters
    wires = tuple(each if each.name == "lo" else each.model_copy(update=changes) for each in last.interfaces)
    return facts.model_copy(update={"counters": (first, last.model_copy(update={"interfaces": wires}))})


class TestBytes:
    def test_bytes_within_the_tolerance_pass_and_beyond_it_fail_with_the_numbers(self) -> None:
        assert judged(two_pods(sent_per_step=2.2e6)).outcome == "VALID"
        verdict = judged(two_pods(sent_per_step=2.35e6))
        assert verdict.outcome == "INVALID"
        assert verdict.reasons[0] == (
            "pod 0 sent 2.350 MB a step by its interface counters, predicted 2.000 MB "
            "(1 x (1.00 + 2) S f (gloo)), allowed difference 0.233 MB"
        )

    def test_one_pods_bytes_stay_off_its_interface(self) -> None:
        assert judged(one_pod(sent_per_step=30_000)).outcome == "VALID"
        reason = only_reason(judged(one_pod(sent_per_step=2e6)), "INVALID")
        assert "pod 0 sent 2.000 MB a step by its interface counters, predicted 0.000 MB" in reason

    def test_efa_bytes_are_read_from_the_efa_counters_alone(self) -> None:
        verdict = judged(efa_nodes(sent_per_step=0.0))
        assert verdict.outcome == "INVALID"
        assert "pod 0 sent 0.000 MB a step by its efa counters" in verdict.reasons[0]

    def test_counters_that_ran_backwards_are_invalid(self) -> None:
        made = two_pods()
        ranks = [with_last_counters(facts, sent=3) for facts in facts_of(made)]
        verdict = judged(made, ranks=ranks)
        assert verdict.outcome == "INVALID"
        assert verdict.reasons[0] == (
            "pod 0: the counters of eth0 ran backwards between steps 2 and 22 "
            "(sent 1000 to 3, received 1000 to 40001000)"
        )

    @pytest.mark.parametrize("samples", [0, 1])
    def test_missing_samples_are_unproven(self, samples: int) -> None:
        made = two_pods()
        ranks = [f.model_copy(update={"counters": f.counters[:samples]}) for f in facts_of(made)]
        verdict = judged(made, ranks=ranks)
        assert verdict.outcome == "UNPROVEN"
        assert verdict.reasons[0] == (
            f"pod 0 sampled its byte counters {samples} times; a sample at both ends of each measured stretch is due"
        )

    def test_a_counter_that_vanished_is_unproven(self) -> None:
        made = two_pods()
        ranks = [with_last_counters(facts, name="eth1") for facts in facts_of(made)]
        verdict = judged(made, ranks=ranks)
        assert (verdict.outcome, verdict.reasons[0]) == (
            "UNPROVEN",
            "pod 0 lacks interface counters in some of its samples",
        )

    def test_one_efa_counter_that_vanished_is_missing_evidence_and_no_missing_bytes(self) -> None:
        made = efa_nodes(efa_devices=2)
        ranks = [
            facts.model_copy(
                update={
                    "counters": tuple(
                        sample.model_copy(update={"interfaces": sample.interfaces[:2]}) for sample in facts.counters
                    )
                }
            )
            for facts in facts_of(made)
        ]
        verdict = judged(made, ranks=ranks)
        assert verdict.outcome == "UNPROVEN"
        assert "pod 0 lacks efa counters in some of its samples" in verdict.reasons

    def test_a_window_that_is_not_the_timed_steps_is_unproven(self) -> None:
        made = two_pods()
        ranks = [
            f.model_copy(update={"counters": (f.counters[0].model_copy(update={"after_step": 4}), f.counters[1])})
            for f in facts_of(made)
        ]
        verdict = judged(made, ranks=ranks)
        assert verdict.outcome == "UNPROVEN"
        assert verdict.reasons[0] == (
            "pod 0 sampled its byte counters from step 4 to step 22, the timed window is 2 to 22"
        )

    def test_what_a_checkpoint_sent_between_two_stretches_is_not_counted(self) -> None:
        made = two_pods()
        ranks = [self._with_checkpoint(facts) for facts in facts_of(made)]
        assert judged(made, ranks=ranks).outcome == "VALID"

    def test_without_a_formula_bytes_are_recorded_and_not_judged(self) -> None:
        made = two_pods(sent_per_step=1e6)
        config = config_of(made)
        expectations = config.expectations.model_copy(update={"bytes_sent": None})
        config = config.model_copy(update={"expectations": expectations})
        assert judged(made, config=config).outcome == "VALID"

    @staticmethod
    def _with_checkpoint(facts: RankFacts) -> RankFacts:
        first, last = facts.counters

        def at(sample: CounterSample, step: int, sent: int, unix_s: float) -> CounterSample:
            wires = tuple(
                each if each.name == "lo" else each.model_copy(update={"sent": sent, "received": sent})
                for each in sample.interfaces
            )
            return sample.model_copy(update={"after_step": step, "interfaces": wires, "unix_s": unix_s})

        start, checkpoint = 1_000, 500_000_000
        window = (
            first,
            at(first, 12, start + 20_000_000, first.unix_s + 10),
            at(first, 12, start + 20_000_000 + checkpoint, first.unix_s + 12),
            at(last, 22, start + 40_000_000 + checkpoint, first.unix_s + 22),
        )
        return facts.model_copy(update={"counters": window})


class TestDialledLinks:
    def test_a_named_rate_that_could_not_be_set_is_unproven(self) -> None:
        reason = only_reason(judged(two_pods(link_shaping="unshaped")), "UNPROVEN")
        assert reason == ("the topology names a link of 50 Mbit/s, and this machine could not set it (link `unshaped`)")

    def test_what_an_unshaped_machines_links_show_proves_nothing_either_way(self) -> None:
        verdict = judged(two_pods(link_shaping="unshaped", sent_per_step=0.0))
        assert verdict.outcome == "UNPROVEN"
        assert len(verdict.reasons) == 3

    def test_a_link_that_carried_more_than_its_rate_was_not_dialled(self) -> None:
        made = two_pods(step_s=(0.01,) * 20)
        verdict = judged(made)
        assert verdict.outcome == "INVALID"
        assert verdict.reasons[0] == (
            "pod 0 sent 1600.0 Mbit/s over a link dialled to 50.0 Mbit/s: the rate was not in force"
        )

    def test_a_clock_that_ran_backwards_leaves_the_rate_unproven(self) -> None:
        made = two_pods()
        ranks = []
        for facts in facts_of(made):
            first, last = facts.counters
            late = first.model_copy(update={"unix_s": last.unix_s + 5})
            ranks.append(facts.model_copy(update={"counters": (late, last)}))
        verdict = judged(made, ranks=ranks)
        assert verdict.outcome == "UNPROVEN"
        assert verdict.reasons[0].startswith("the clock of pod 0 ran backwards (-5 s from step 2 to 22)")

    def test_a_probe_that_outran_the_dialled_rate_says_that_the_link_was_not_shaped(self) -> None:
        reason = only_reason(judged(two_pods(), probe=LinkProbe(sent_bytes=500_000_000, seconds=1.0)), "INVALID")
        assert reason == (
            "the link was not shaped: a pod sent 4000.0 Mbit/s flat out over a link dialled to 50.0 Mbit/s"
        )

    def test_a_probe_at_the_dialled_rate_and_its_burst_passes(self) -> None:
        carried = 50e6 / 8 * (1.05 + 0.01)
        assert judged(two_pods(), probe=LinkProbe(sent_bytes=int(carried), seconds=1.0)).outcome == "VALID"
        assert judged(two_pods(), probe=LinkProbe(sent_bytes=int(carried) + 2, seconds=1.0)).outcome == "INVALID"

    def test_a_probe_of_a_link_that_no_one_dialled_is_no_evidence(self) -> None:
        probe = LinkProbe(sent_bytes=500_000_000, seconds=1.0)
        undialled = two_pods(rate_bits_per_s=None, link_shaping="undialled")
        assert judged(undialled, probe=probe).outcome == "VALID"
