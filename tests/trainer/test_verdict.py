"""A run is what its plan promised, or the verdict says with numbers why not."""

from dataclasses import replace

import pytest

from tests.record_factory import (
    Made,
    config_of,
    efa_nodes,
    facts_of,
    nccl_logs_of,
    one_pod,
    two_pods,
)
from tests.trainer.judging import judged, only_reason
from trainer.record import Connection, RankFacts, Transport, Verdict
from trainer.verdict import judge_links, transports


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


def test_wrong_evidence_outweighs_missing_evidence_and_both_are_told() -> None:
    made = replace(two_pods(link_shaping="unshaped"), status="failed")
    verdict = judged(made)
    assert verdict.outcome == "INVALID"
    assert len(verdict.reasons) == 2
