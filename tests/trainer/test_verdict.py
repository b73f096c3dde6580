"""A run is what its plan promised, or the verdict says with numbers why not."""

from dataclasses import replace
from typing import Any

import pytest

from tests.record_factory import (
    Made,
    config_of,
    efa_nodes,
    facts_of,
    nccl_logs_of,
    one_pod,
    steps_of,
    two_pods,
)
from trainer.config import TrainConfig
from trainer.record import Connection, CounterSample, LinkProbe, RankFacts, StepLine, Transport, Verdict
from trainer.verdict import judge, judge_links, transports


def judged(
    made: Made,
    *,
    ranks: list[RankFacts] | None = None,
    steps: dict[int, list[StepLine]] | None = None,
    logs: dict[int, str] | None = None,
    config: TrainConfig | None = None,
    probe: LinkProbe | None = None,
) -> Verdict:
    config = config or config_of(made)
    ranks = facts_of(made) if ranks is None else ranks
    seen = transports(config, ranks, nccl_logs_of(made) if logs is None else logs)
    steps = steps_of(made) if steps is None else steps
    return judge(config, made.status, made.link_shaping, ranks, seen, steps, link_probe=probe)


def only_reason(verdict: Verdict, outcome: str) -> str:
    assert verdict.outcome == outcome, verdict
    assert len(verdict.reasons) == 1, verdict
    return verdict.reasons[0]


@pytest.mark.parametrize(
    "made", [one_pod(), two_pods(), efa_nodes(), two_pods(pods=3, ranks_per_pod=2, sent_per_step=10e6 / 3)]
)
def test_a_run_that_kept_its_plan_is_valid_without_reasons(made: Made) -> None:
    assert judged(made) == Verdict(outcome="VALID", reasons=())


class TestTransports:
    def test_gloo_between_pods_is_tcp_and_inside_a_pod_loopback(self) -> None:
        made = two_pods(ranks_per_pod=2)
        seen = {(t.from_rank, t.to_rank): t for t in transports(config_of(made), facts_of(made), {})}
        assert (seen[0, 1].transport, seen[0, 1].link_class) == ("loopback", "same-pod")
        assert (seen[1, 2].transport, seen[1, 2].link_class) == ("TCP", "same-node")
        assert seen[1, 2].detail == "10.90.0.1 -> 10.90.0.2"
        assert len(seen) == 12

    def test_addresses_without_ports_still_find_the_pod(self) -> None:
        made = two_pods()
        ranks = [
            facts.model_copy(
                update={
                    "connections": (
                        Connection(
                            local_address=f"::ffff:10.90.0.{facts.pod + 1}",
                            remote_address=f"10.90.0.{2 - facts.pod}",
                        ),
                    )
                }
            )
            for facts in facts_of(made)
        ]
        seen = transports(config_of(made), ranks, {})
        assert [(t.from_rank, t.to_rank, t.transport) for t in seen] == [(0, 1, "TCP"), (1, 0, "TCP")]

    def test_a_socket_of_a_pod_to_itself_is_no_evidence_about_other_pods(self) -> None:
        made = two_pods()
        own = Connection(local_address="127.0.0.1:5000", remote_address="127.0.0.1:29500")
        ranks = [facts.model_copy(update={"connections": (own,)}) for facts in facts_of(made)]
        assert transports(config_of(made), ranks, {}) == ()

    def test_two_pods_on_one_loopback_are_seen_to_be_so(self) -> None:
        made = two_pods()
        ends = ("127.0.0.1:5000", "127.0.0.1:6000")
        ranks = [
            facts.model_copy(
                update={
                    "connections": (Connection(local_address=ends[facts.rank], remote_address=ends[1 - facts.rank]),)
                }
            )
            for facts in facts_of(made)
        ]
        assert {t.transport for t in transports(config_of(made), ranks, {})} == {"loopback"}
        assert "used loopback" in only_reason(judged(made, ranks=ranks), "INVALID")

    def test_nccl_rings_carry_class_transport_detail_and_channels(self) -> None:
        made = efa_nodes()
        seen = transports(config_of(made), facts_of(made), nccl_logs_of(made))
        assert [(t.from_rank, t.to_rank, t.link_class, t.transport, t.channels) for t in seen] == [
            (0, 1, "same-pod", "P2P+read", 2),
            (1, 2, "other-node", "NET/Libfabric+GDRDMA", 2),
            (2, 3, "same-pod", "P2P+read", 2),
            (3, 0, "other-node", "NET/Libfabric+GDRDMA", 2),
        ]

    def test_a_smaller_communicators_ranks_are_not_taken_for_global_ones(self) -> None:
        made = efa_nodes()
        log = (
            "job-node-0-0:188:585 [0] NCCL INFO comm 0xa rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0\n"
            "job-node-0-0:188:585 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct\n"
        )
        assert transports(config_of(made), facts_of(made), {0: log}) == ()


class TestLinks:
    def test_a_forbidden_transport_is_invalid_and_shown_in_the_logs_own_words(self) -> None:
        reason = only_reason(judged(efa_nodes(network_path="NET/Socket/0")), "INVALID")
        assert reason == (
            "other-node: 2 pairs used NET/Socket (rank 1 to 2: `NET/Socket/0`), which the plan forbids; "
            "NET/Libfabric+GDRDMA is expected"
        )

    def test_a_transport_that_is_neither_expected_nor_forbidden_proves_nothing_good(self) -> None:
        reason = only_reason(judged(efa_nodes(network_path="NET/IB/0")), "INVALID")
        assert "used NET/IB (rank 1 to 2: `NET/IB/0`) where NET/Libfabric+GDRDMA is expected" in reason

    def test_one_expected_pair_does_not_excuse_another_that_used_something_else(self) -> None:
        made = efa_nodes()
        logs = nccl_logs_of(made)
        logs[3] = logs[3].replace("NET/Libfabric/0/GDRDMA", "NET/IB/0")
        reason = only_reason(judged(made, logs=logs), "INVALID")
        assert reason.startswith("other-node: 1 pair used NET/IB (rank 3 to 0: `NET/IB/0`) where ")

    def test_a_plugin_that_found_other_nics_than_asked_is_invalid(self) -> None:
        made = efa_nodes()
        ranks = [facts.model_copy(update={"nccl_nics_found": 0}) for facts in facts_of(made)]
        reason = only_reason(judged(made, ranks=ranks), "INVALID")
        assert reason == "NCCL's plugin found 0 NICs on rank 0, its pod asked for 1"

    def test_a_log_that_counts_no_nics_accuses_nobody(self) -> None:
        made = efa_nodes()
        ranks = [facts.model_copy(update={"nccl_nics_found": None}) for facts in facts_of(made)]
        assert judged(made, ranks=ranks).outcome == "VALID"

    def test_an_efa_device_that_carried_nothing_is_invalid_by_its_own_counter(self) -> None:
        made = efa_nodes(efa_devices=4)
        assert judged(made).outcome == "VALID"
        verdict = judged(made, ranks=[self._over_one_device(facts) for facts in facts_of(made)])
        assert verdict.outcome == "INVALID"
        assert verdict.reasons[0] == (
            "pod 0 sent nothing over rdmap16s28, rdmap16s29, rdmap16s30; "
            "all 4 EFA devices that it asked for are meant to carry"
        )

    def test_without_a_counter_of_each_device_the_logs_numbers_leave_it_unproven(self) -> None:
        made = efa_nodes(efa_devices=4)
        ranks = [f.model_copy(update={"counters": ()}) for f in facts_of(made)]
        verdict = judged(made, ranks=ranks)
        assert verdict.outcome == "UNPROVEN"
        assert verdict.reasons[0].startswith("NCCL's lines name EFA device 0 only for pod 0, which asked for 4;")

    @staticmethod
    def _over_one_device(facts: RankFacts) -> RankFacts:
        """The same bytes, all of them over the first device."""
        first, last = facts.counters
        sent = sum(c.sent - 1_000 for c in last.interfaces if c.kind == "efa")
        wires = [c.model_copy(update={"sent": 1_000, "received": 1_000}) for c in last.interfaces]
        wires[1] = wires[1].model_copy(update={"sent": 1_000 + sent, "received": 1_000 + sent})
        wires[0] = last.interfaces[0]
        return facts.model_copy(update={"counters": (first, last.model_copy(update={"interfaces": tuple(wires)}))})

    def test_a_class_without_evidence_is_unproven(self) -> None:
        made = efa_nodes()
        logs = {rank: text.replace("P2P/CUMEM/read", "") for rank, text in nccl_logs_of(made).items()}
        reason = only_reason(judged(made, logs=logs), "UNPROVEN")
        assert reason == "same-pod: none of the 2 pairs left evidence of its transport; P2P or P2P+read is expected"

    def test_a_class_that_the_plan_does_not_know_is_invalid(self) -> None:
        made = efa_nodes()
        config = config_of(made)
        links = tuple(link for link in config.expectations.links if link.link_class != "same-pod")
        expectations = config.expectations.model_copy(update={"links": links})
        verdict = judged(made, config=config.model_copy(update={"expectations": expectations}))
        assert "same-pod: 2 pairs used P2P+read" in only_reason(verdict, "INVALID")

    def test_fewer_efa_devices_than_asked_are_invalid(self) -> None:
        made = efa_nodes()
        ranks = [facts.model_copy(update={"efa_devices": ()}) for facts in facts_of(made)]
        verdict = judged(made, ranks=ranks)
        assert verdict.reasons[0] == "pod 0 sees 0 EFA devices (none), it asked for 1"

    def test_a_privileged_pod_that_sees_all_devices_of_its_host_is_invalid(self) -> None:
        made = efa_nodes()
        ranks = [f.model_copy(update={"efa_devices": ("a", "b", "c", "d")}) for f in facts_of(made)]
        assert judged(made, ranks=ranks).reasons[0] == "pod 0 sees 4 EFA devices (a, b, c, d), it asked for 1"

    def test_as_many_devices_as_asked_are_numbered_from_0(self) -> None:
        path = "NET/Libfabric/1/GDRDMA"
        assert "device number 1" in only_reason(judged(efa_nodes(network_path=path)), "INVALID")
        assert judged(efa_nodes(network_path=path, efa_devices=2)).outcome == "VALID"

    def test_an_efa_device_beyond_those_asked_for_is_invalid(self) -> None:
        reason = only_reason(judged(efa_nodes(network_path="NET/Libfabric/3/GDRDMA")), "INVALID")
        assert reason == "NCCL used EFA device number 3, counted from 0; each pod asked for 1"

    def test_the_check_during_the_run_sees_links_and_no_counters(self) -> None:
        made = efa_nodes(sent_per_step=9e9)
        config, ranks = config_of(made), facts_of(made)
        seen = transports(config, ranks, nccl_logs_of(made))
        assert judge_links(config, ranks, seen).outcome == "VALID"
        wrong: list[Transport] = [t.model_copy(update={"transport": "NET/Socket"}) for t in seen]
        assert judge_links(config, ranks, wrong).outcome == "INVALID"


class TestPlaces:
    def test_pods_on_more_nodes_than_planned_are_invalid(self) -> None:
        made = two_pods()
        ranks = [f.model_copy(update={"node": f"node-{f.pod}"}) for f in facts_of(made)]
        verdict = judged(made, ranks=ranks)
        assert verdict.outcome == "INVALID"
        assert verdict.reasons[0] == "the pods ran on 2 nodes (node-0, node-1), the plan says 1"
        assert "same-node: the places of the ranks make 0 pairs, the plan says 1" in verdict.reasons

    def test_an_absent_rank_is_named(self) -> None:
        made = two_pods()
        verdict = judged(made, ranks=facts_of(made)[:1])
        assert verdict.outcome == "INVALID"
        assert verdict.reasons[0] == "1 of 2 ranks left facts; ranks 1 are absent"


class TestSteps:
    def test_a_run_that_did_not_complete_is_invalid(self) -> None:
        made = two_pods(status="interrupted")
        steps = {rank: lines[:9] for rank, lines in steps_of(made).items()}
        verdict = judged(made, steps=steps)
        assert verdict.outcome == "INVALID"
        assert verdict.reasons[0] == "the run ended as `interrupted` after step 9 of 22"

    def test_a_rank_that_lost_steps_is_named(self) -> None:
        made = two_pods()
        steps = steps_of(made)
        steps[1] = steps[1][:-3]
        reason = only_reason(judged(made, steps=steps), "INVALID")
        assert reason == "rank 1 wrote 19 step lines (1 to 19), steps 1 to 22 are due"

    def test_a_resumed_run_may_begin_after_its_checkpoint_on_all_ranks_alike(self) -> None:
        made = two_pods(config={"resume": True})
        steps = {rank: self._resumed(lines[10:]) for rank, lines in steps_of(made).items()}
        ranks = [self._sampled_from(facts, 12) for facts in facts_of(made)]
        assert judged(made, steps=steps, ranks=ranks).outcome == "VALID"
        steps[1] = steps[1][1:]
        assert "rank 1 wrote 11 step lines (12 to 22)" in only_reason(judged(made, steps=steps, ranks=ranks), "INVALID")

    @staticmethod
    def _resumed(lines: list[StepLine]) -> list[StepLine]:
        """A process that resumes is cold: its own first two steps are warm-up."""
        return [x.model_copy(update={"phase": "warmup" if i < 2 else "timed"}) for i, x in enumerate(lines)]

    @staticmethod
    def _sampled_from(facts: RankFacts, step: int) -> RankFacts:
        first, last = facts.counters
        begin = first.model_copy(update={"after_step": step})
        halved = tuple(
            c.model_copy(update={"sent": c.sent // 2, "received": c.received // 2}) if c.name != "lo" else c
            for c in last.interfaces
        )
        return facts.model_copy(update={"counters": (begin, last.model_copy(update={"interfaces": halved}))})

    def test_a_run_of_warm_up_alone_is_unproven(self) -> None:
        made = two_pods(config={"warmup_steps": 22})
        steps = {
            rank: [line.model_copy(update={"phase": "warmup"}) for line in lines]
            for rank, lines in steps_of(made).items()
        }
        verdict = judged(made, steps=steps, ranks=[f.model_copy(update={"counters": ()}) for f in facts_of(made)])
        assert verdict.outcome == "UNPROVEN"
        assert verdict.reasons[0].startswith("no step is timed")

    @pytest.mark.parametrize(
        ("step", "phase", "sentence"),
        [
            (9, "warmup", "rank 1 wrote step 9 as `warmup`, by the config's 2 warm-up steps it is `timed`"),
            (2, "timed", "rank 1 wrote step 2 as `timed`, by the config's 2 warm-up steps it is `warmup`"),
        ],
    )
    def test_a_step_is_warm_up_or_timed_as_the_config_says(self, step: int, phase: str, sentence: str) -> None:
        made = two_pods()
        steps = steps_of(made)
        steps[1][step - 1] = steps[1][step - 1].model_copy(update={"phase": phase})
        assert only_reason(judged(made, steps=steps), "INVALID") == sentence

    @pytest.mark.parametrize(("real", "padded"), [(256, 0), (500, 12), (1024, 0)])
    def test_a_packed_step_fills_every_slot(self, real: int, padded: int) -> None:
        made = two_pods()
        steps = steps_of(made)
        steps[0][4] = steps[0][4].model_copy(update={"real_tokens": real, "padded_tokens": padded})
        assert only_reason(judged(made, steps=steps), "INVALID") == (
            f"rank 0 trained {real} real and {padded} padded tokens in step 5, 512 real ones are due"
        )

    @pytest.mark.parametrize(("real", "padded"), [(256, 512), (3, 125), (100, 27)])
    def test_padded_lines_fit_their_micro_batch(self, real: int, padded: int) -> None:
        made = two_pods(real_share=0.5)
        assert judged(made).outcome == "VALID"
        steps = steps_of(made)
        steps[0][4] = steps[0][4].model_copy(update={"real_tokens": real, "padded_tokens": padded})
        assert only_reason(judged(made, steps=steps), "INVALID").startswith(
            f"rank 0 trained {real} real tokens in {real + padded} slots in step 5;"
        )

    def test_a_run_without_any_loss_is_invalid(self) -> None:
        made = two_pods()
        steps = {rank: [x.model_copy(update={"loss": None}) for x in lines] for rank, lines in steps_of(made).items()}
        assert "step 1: rank 0 has no finite loss" in only_reason(judged(made, steps=steps), "INVALID")

    @pytest.mark.parametrize(
        ("loss", "sentence"),
        [
            (None, "step 5: rank 1 has no finite loss though 1024 real tokens were trained"),
            (float("inf"), "step 5: the loss of rank 1 is inf"),
            (9.9, "step 5: rank 0 has loss 6.850000, rank 1 9.900000; all ranks must agree"),
        ],
    )
    def test_losses_must_be_finite_and_equal_on_all_ranks(self, loss: float | None, sentence: str) -> None:
        made = two_pods()
        steps = steps_of(made)
        steps[1][4] = steps[1][4].model_copy(update={"loss": loss})
        assert only_reason(judged(made, steps=steps), "INVALID") == sentence

    def test_a_step_of_blank_lines_has_a_token_a_sequence_and_needs_no_loss(self) -> None:
        made = two_pods(real_share=1 / 128)
        steps = {
            rank: [line.model_copy(update={"loss": None}) for line in lines] for rank, lines in steps_of(made).items()
        }
        assert judged(made, steps=steps).outcome == "VALID"


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
        carried = 50e6 / 8 * 1.05 + 4 * 1024 * 1024
        assert judged(two_pods(), probe=LinkProbe(sent_bytes=int(carried), seconds=1.0)).outcome == "VALID"
        assert judged(two_pods(), probe=LinkProbe(sent_bytes=int(carried) + 2, seconds=1.0)).outcome == "INVALID"

    def test_a_probe_of_a_link_that_no_one_dialled_is_no_evidence(self) -> None:
        probe = LinkProbe(sent_bytes=500_000_000, seconds=1.0)
        undialled = two_pods(rate_bits_per_s=None, link_shaping="undialled")
        assert judged(undialled, probe=probe).outcome == "VALID"


def test_wrong_evidence_outweighs_missing_evidence_and_both_are_told() -> None:
    made = replace(two_pods(link_shaping="unshaped"), status="failed")
    verdict = judged(made)
    assert verdict.outcome == "INVALID"
    assert len(verdict.reasons) == 2
