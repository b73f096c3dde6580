"""Step lines are those that the config asks for, with equal finite losses."""

import pytest

from tests.record_factory import (
    facts_of,
    steps_of,
    two_pods,
)
from tests.trainer.judging import judged, only_reason
from trainer.record import RankFacts, StepLine


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
        assert judged(made, steps=steps, ranks=ranks, resumed_after_step=10).outcome == "VALID"
        late = judged(made, steps=steps | {1: steps[1][1:]}, ranks=ranks, resumed_after_step=10)
        assert "rank 1 wrote 11 step lines (12 to 22)" in only_reason(late, "INVALID")
        unsaid = judged(made, steps=steps, ranks=ranks)
        assert unsaid.reasons[0] == "rank 0 wrote 12 step lines (11 to 22), steps 1 to 22 are due"

    def test_a_run_whose_config_resumes_nothing_begins_at_step_1(self) -> None:
        made = two_pods()
        steps = {rank: self._resumed(lines[10:]) for rank, lines in steps_of(made).items()}
        ranks = [self._sampled_from(facts, 12) for facts in facts_of(made)]
        reason = only_reason(judged(made, steps=steps, ranks=ranks, resumed_after_step=10), "INVALID")
        assert reason == "the run began after step 10, and its config lets it resume nothing"

    @pytest.mark.parametrize(("option", "then"), [("stop", "the run ended there"), ("skip", "its update was left out")])
    def test_a_step_whose_loss_or_gradient_was_no_number_makes_the_run_invalid(self, option: str, then: str) -> None:
        made = two_pods(config={"on_nan_loss": option})
        steps = steps_of(made)
        steps[1][4] = steps[1][4].model_copy(update={"finite": False, "gradient_norm": None})
        reason = only_reason(judged(made, steps=steps), "INVALID")
        assert reason == f"step 5: the loss or the gradient was not finite, and {then}"

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
