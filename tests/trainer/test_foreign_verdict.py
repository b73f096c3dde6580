"""A job that isn't ours is held to its links, its steps, and the interface that carried its bytes."""

from collections.abc import Sequence

import pytest

from tests.record_factory import Made, config_of, efa_nodes, facts_of, steps_of, two_pods
from tests.trainer.judging import judged, only_reason
from trainer.config import TrainConfig
from trainer.record import CounterSample, InterfaceBytes, RankFacts, Verdict
from trainer.sent import Kind

COMMAND = ("torchrun", "train.py")


def foreign(made: Made) -> TrainConfig:
    config = config_of(made)
    bytes_unknown = config.expectations.model_copy(update={"bytes_sent": None})
    return config.model_copy(update={"command": COMMAND, "expectations": bytes_unknown})


def verdict(made: Made, **evidence: object) -> Verdict:
    return judged(made, config=foreign(made), **evidence)  # type: ignore[arg-type]


def test_one_rank_may_tell_for_all_and_steps_may_begin_anywhere() -> None:
    made = two_pods()
    told = {0: steps_of(made)[0][1:], 1: []}
    assert verdict(made, steps=told).outcome == "VALID"


def test_bytes_are_held_to_no_formula() -> None:
    assert verdict(two_pods(sent_per_step=9e6, rate_bits_per_s=None, link_shaping="undialled")).outcome == "VALID"


def test_a_dialled_rate_is_judged_by_nobody_s_formula_but_must_have_been_set() -> None:
    assert verdict(two_pods(link_shaping="unshaped")).outcome == "UNPROVEN"


def test_a_job_that_tells_of_no_timed_step_is_unproven() -> None:
    reason = only_reason(verdict(two_pods(), steps={0: [], 1: []}), "UNPROVEN")
    assert reason.startswith("no step is timed: the job told of 0 and 2 are warm-up; call trainer.mark.mark")


def test_a_loss_that_is_no_number_is_invalid() -> None:
    made = two_pods()
    steps = steps_of(made)
    steps[0][5] = steps[0][5].model_copy(update={"finite": False, "loss": None})
    assert only_reason(verdict(made, steps=steps), "INVALID") == "step 6: the loss is no number"


@pytest.mark.parametrize(("efa", "tcp", "outcome"), [(9_000_000, 1_000, "VALID"), (0, 180_000_000, "INVALID")])
def test_where_efa_was_asked_for_it_carried_more_than_the_interface(efa: int, tcp: int, outcome: str) -> None:
    made = efa_nodes()
    ranks = [_with_counters(facts, efa, tcp) for facts in facts_of(made)]
    found = verdict(made, ranks=ranks)
    assert found.outcome == outcome
    if outcome == "INVALID":
        assert "pod 0 sent 0.000 MB by its efa counters and 180.000 MB by its interface counters" in found.reasons[0]


def test_a_pod_without_counters_leaves_the_run_unproven() -> None:
    made = two_pods()
    ranks = [facts.model_copy(update={"counters": ()}) for facts in facts_of(made)]
    assert verdict(made, ranks=ranks).reasons == tuple(
        f"pod {pod} sampled no byte counters between two steps" for pod in (0, 1)
    )


def test_counters_that_saw_nothing_prove_nothing() -> None:
    made = efa_nodes()
    ranks = [_with_counters(facts, 0, 0) for facts in facts_of(made)]
    reasons = verdict(made, ranks=ranks).reasons
    assert "pod 0 sent nothing that a counter saw in the timed steps" in reasons


def test_a_wrong_transport_is_as_wrong_as_in_our_own_run() -> None:
    made = two_pods()
    ranks = [facts.model_copy(update={"connections": ()}) for facts in facts_of(made)]
    assert "left evidence of its transport" in " ".join(verdict(made, ranks=ranks).reasons)


def _with_counters(facts: RankFacts, efa: int, tcp: int) -> RankFacts:
    first, last = facts.counters

    def sample(end: CounterSample, rows: Sequence[tuple[str, str, int]]) -> CounterSample:
        kinds: dict[str, Kind] = {"efa": "efa", "interface": "interface"}
        made = (InterfaceBytes(name=name, kind=kinds[kind], sent=sent, received=sent) for name, kind, sent in rows)
        return end.model_copy(update={"interfaces": tuple(made)})

    names = (facts.efa_devices[0], "eth0")
    ends = (
        sample(first, [(names[0], "efa", 0), (names[1], "interface", 0)]),
        sample(last, [(names[0], "efa", efa), (names[1], "interface", tcp)]),
    )
    return facts.model_copy(update={"counters": ends})
