"""Runs stand in one table only where they did the same work."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.record_factory import Made, config_of, noisy, one_pod, two_pods, write_run
from workloads.comparison.compare import Comparison, Vary, compare
from workloads.comparison.records import Run, read_runs


def runs_of(folder: Path, *all_made: Made) -> tuple[Run, ...]:
    for number, made in enumerate(all_made):
        write_run(made, folder, f"{made.arm}-{number}")
    return read_runs([str(folder)])


def compared(folder: Path, *all_made: Made, **options: Any) -> Comparison:
    return compare(runs_of(folder, *all_made), **options)


def refusal(folder: Path, *all_made: Made, **options: Any) -> str:
    runs = runs_of(folder, *all_made)
    with pytest.raises(ValueError, match=r".+") as caught:
        compare(runs, **options)
    return str(caught.value)


def test_repeats_form_an_arm_and_the_fastest_valid_arm_is_the_baseline(tmp_path: Path) -> None:
    slow = [two_pods(step_s=noisy(1.2, steps=20, spread=0.01, seed=seed)) for seed in (1, 2)]
    fast = [one_pod(step_s=noisy(0.2, steps=20, spread=0.01, seed=seed)) for seed in (3, 4)]
    found = compared(tmp_path, *slow, *fast)
    assert [(arm.name, len(arm.runs)) for arm in found.arms] == [("one-pod", 2), ("two-pods-slow", 2)]
    assert found.baseline is not None
    assert found.baseline.name == "one-pod"
    assert found.ratios["two-pods-slow"].value == pytest.approx(6.0, rel=0.01)
    assert found.ratios["two-pods-slow"].tells_apart


def test_an_invalid_run_shows_no_speed_up_and_is_no_baseline(tmp_path: Path) -> None:
    broken = one_pod(arm="broken", sent_per_step=5e6, step_s=(0.1,) * 20)
    found = compared(tmp_path, broken, one_pod(), two_pods())
    assert found.baseline is not None
    assert found.baseline.name == "one-pod"
    assert "broken" not in found.ratios
    assert found.arms[-1].name == "broken"
    assert found.arms[-1].outcome == "INVALID"


def test_an_unproven_arm_is_baseline_only_where_no_arm_is_valid(tmp_path: Path) -> None:
    faster = two_pods(arm="unshaped", link_shaping="unshaped", step_s=(0.1,) * 20)
    found = compared(tmp_path, faster, one_pod())
    assert found.baseline is not None
    assert found.baseline.name == "one-pod"
    alone = compared(tmp_path / "alone", faster)
    assert alone.baseline is not None
    assert alone.baseline.outcome == "UNPROVEN"


def test_an_invalid_repeat_is_left_out_of_its_arm(tmp_path: Path) -> None:
    found = compared(tmp_path, two_pods(), two_pods(status="failed", step_s=(9.0,) * 20))
    (arm,) = found.arms
    assert (len(arm.runs), len(arm.counted), arm.outcome) == (2, 1, "VALID")
    assert found.typical_step_s[arm.name] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"seed": 8}, "seed"),
        ({"sequence_length": 64}, "sequenceLength"),
        ({"cpus_per_rank": 2.0}, "cpusPerRank"),
        ({"memory_gib_per_rank": 8.0}, "memoryGibPerRank"),
        ({"image": "other@sha256:1"}, "image"),
        ({"warmup_steps": 1}, "warmupSteps"),
        ({"data": config_of(two_pods()).data.model_copy(update={"feed": "lines"})}, "data.feed"),
        ({"model": config_of(two_pods()).model.model_copy(update={"name": "big"})}, "model.name"),
    ],
)
def test_a_different_key_is_refused_and_named_with_both_values(
    tmp_path: Path, change: dict[str, Any], key: str
) -> None:
    sentence = refusal(tmp_path, one_pod(), two_pods(config=change))
    assert f"{key}: " in sentence
    assert "in one-pod" in sentence
    assert "in two-pods-slow" in sentence


def test_another_global_batch_as_in_the_seeds_is_refused(tmp_path: Path) -> None:
    recipe = config_of(two_pods()).recipe.model_copy(update={"accumulation": 4})
    sentence = refusal(tmp_path, one_pod(), two_pods(config={"recipe": recipe}))
    assert "tokenSlotsPerStep: 1024 in one-pod; 4096 in two-pods-slow" in sentence


def test_accumulation_may_follow_from_the_ranks(tmp_path: Path) -> None:
    twice = config_of(two_pods()).recipe.model_copy(update={"accumulation": 2})
    one_rank = two_pods(arm="one-rank", pods=1, rate_bits_per_s=None, link_shaping="undialled",
                        sent_per_step=0.0, config={"recipe": twice})  # fmt: skip
    assert len(compared(tmp_path, one_rank, two_pods()).ratios) == 1


def test_a_difference_is_allowed_by_its_name_or_by_the_first_part_of_it(tmp_path: Path) -> None:
    newer = two_pods(versions={"torch": "2.16.0", "deepspeed": "0.19.8"})
    assert "versions.torch" in refusal(tmp_path / "refused", one_pod(), newer)
    for number, allow in enumerate(("versions", "versions.torch")):
        found = compared(tmp_path / str(number), one_pod(), newer, allow=[allow])
        assert [each.key for each in found.allowed] == ["versions.torch"]
    assert "seed" in refusal(tmp_path / "seed", one_pod(), two_pods(config={"seed": 8}), allow=["see"])


def test_the_key_is_the_same_for_the_same_work_and_another_for_other_work(tmp_path: Path) -> None:
    same = [compared(tmp_path / name, *made).key for name, made in
            (("a", (one_pod(), two_pods())), ("b", (two_pods(),)))]  # fmt: skip
    other = compared(tmp_path / "c", two_pods(config={"seed": 8})).key
    assert same[0] == same[1] != other


class TestWhatVaries:
    @staticmethod
    def other_recipe(**changes: Any) -> Made:
        recipe = config_of(two_pods()).recipe.model_copy(update={"activation_checkpointing": True})
        return replace(two_pods(arm="checkpointed", config={"recipe": recipe}), **changes)

    def test_one_topology_with_two_recipes_varies_the_recipe(self, tmp_path: Path) -> None:
        assert compared(tmp_path, two_pods(), self.other_recipe()).vary == "recipe"

    def test_two_topologies_must_share_the_recipe(self, tmp_path: Path) -> None:
        assert "recipe.activation_checkpointing" in refusal(tmp_path, one_pod(), self.other_recipe())

    def test_best_lets_both_vary(self, tmp_path: Path) -> None:
        assert compared(tmp_path, one_pod(), self.other_recipe(), vary="best").vary == "best"

    def test_a_recipe_experiment_must_keep_its_topology(self, tmp_path: Path) -> None:
        vary: Vary = "recipe"
        sentence = refusal(tmp_path, one_pod(), two_pods(), vary=vary)
        assert 'topology: "cpu-1x2-local" in one-pod; "cpu-2x1-tcp-50mbit" in two-pods-slow' in sentence


class TestLosses:
    def test_losses_that_drift_apart_beyond_the_tolerance_are_refused(self, tmp_path: Path) -> None:
        sentence = refusal(tmp_path, one_pod(), two_pods(loss_offset=0.2))
        assert sentence.startswith("losses: run two-pods-slow-1 differs from run one-pod-0")
        assert "by 2.95% on average" in sentence

    def test_losses_within_the_tolerance_pass_and_their_difference_is_told(self, tmp_path: Path) -> None:
        found = compared(tmp_path, one_pod(), two_pods(loss_offset=0.02))
        assert found.loss_difference == pytest.approx(0.00295, rel=0.01)

    def test_where_no_loss_can_be_compared_none_is_said_to_be_equal(self, tmp_path: Path) -> None:
        nothing = one_pod(real_share=1 / 128)
        runs = runs_of(tmp_path, nothing, two_pods(real_share=1 / 128))
        blank = [self.without_losses(run) for run in runs]
        found = compare(blank)
        assert found.loss_difference is None
        assert found.uncompared_losses == ("two-pods-slow-1",)
        assert compared(tmp_path / "alone", one_pod()).loss_difference is None

    @staticmethod
    def without_losses(run: Run) -> Run:
        lines = {rank: tuple(x.model_copy(update={"loss": None}) for x in steps) for rank, steps in run.steps.items()}
        return replace(run, steps=lines)

    def test_a_loss_difference_is_allowed_by_name(self, tmp_path: Path) -> None:
        found = compared(tmp_path, one_pod(), two_pods(loss_offset=0.2), allow=["losses"])
        assert found.loss_difference is not None
        assert found.loss_difference > 0.01


def test_one_arm_name_for_two_topologies_is_refused(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, two_pods(), one_pod(arm="two-pods-slow"))
    assert "arm two-pods-slow has two different values of topology" in sentence


def test_no_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="no run to compare"):
        compare([])
