"""The engine `direct` on two ranks over gloo: the losses of DeepSpeed's ZeRO-1, and its habits."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.trainer.launching import RECIPE, ZERO_3, Ended, Started, tiny_config
from trainer.config import DataConfig, RecipeConfig
from trainer.flops import parameters

STEPS = 12
ZERO_1 = ZERO_3.model_copy(update={"stage": 1})
DEEPSPEED = RECIPE.model_copy(update={"zero": ZERO_1})
DIRECT = DEEPSPEED.model_copy(update={"engine": "direct"})
CONFIG = tiny_config(recipe=DIRECT, steps=STEPS, checkpoint_every_steps=4, resume=True)


@pytest.fixture(scope="module")
def whole(fresh_cache: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A run of 12 steps that nothing disturbs; it saves after steps 4, 8 and 12."""
    return Started(CONFIG, tmp_path_factory.mktemp("whole"), fresh_cache()).wait()


@pytest.mark.torch
def test_it_trains_as_deepspeed_s_zero_1_does(whole: Ended, tmp_path: Path, cache: Path) -> None:
    assert whole.exit_code == 0, whole.output
    assert whole.record.verdict.outcome == "VALID"
    assert {line.step for line in whole.steps() if line.checkpoint_s > 0} == {4, 8, 12}
    assert whole.record.kernels == {"elementwise": "torch", "attention": "torch"}
    theirs = Started(tiny_config(recipe=DEEPSPEED, steps=STEPS), tmp_path, cache).wait()
    assert theirs.exit_code == 0, theirs.output
    assert theirs.record.kernels == {}
    # Both in bf16: their gradients are summed in another order. The loss falls by 0.19 in these steps.
    assert whole.losses() == pytest.approx(theirs.losses(), abs=1e-3)
    norms = [[line.gradient_norm for line in ended.steps()] for ended in (whole, theirs)]
    assert norms[0] == pytest.approx(norms[1], rel=5e-3)


@pytest.mark.torch
def test_it_sends_at_least_three_copies_of_the_weights_a_step_over_gloo(whole: Ended) -> None:
    """At least: `lo` is the whole machine's. That it is no more, two H200 in namespaces of their own showed."""
    first, last = whole.record.ranks[0].counters
    sent = [next(i.sent for i in sample.interfaces if i.name == "lo") for sample in (first, last)]
    steps, ranks = last.after_step - first.after_step, 2
    copies = 3 * 2 * parameters(CONFIG.model.architecture) * (ranks - 1) / ranks
    assert sent[1] - sent[0] > steps * ranks * copies


@pytest.mark.torch
def test_stopped_by_one_rank_it_resumes_with_the_same_losses(whole: Ended, tmp_path: Path, cache: Path) -> None:
    started = Started(CONFIG, tmp_path / "first", cache)
    started.terminate_rank(1, after_step=2)
    interrupted = started.wait()
    assert interrupted.record.status == "interrupted", interrupted.output
    stopped_after = interrupted.steps()[-1].step
    assert 2 < stopped_after < STEPS, "the signal came too late for this test to tell anything"
    resumed = Started(CONFIG, tmp_path / "second", cache).wait()
    assert resumed.exit_code == 0, resumed.output
    assert resumed.losses() == {step: loss for step, loss in whole.losses().items() if step > stopped_after}
    folders = {f.name for f in (cache / "checkpoints" / CONFIG.job_name).iterdir()}
    assert len(folders) == 2, "the newest two are kept"
    assert "checkpoint-12" in folders


@pytest.mark.torch
def test_padded_lines_and_recomputation_train_too(tmp_path: Path, cache: Path) -> None:
    recipe = DIRECT.model_copy(update={"micro_batch": 1, "accumulation": 1, "activation_checkpointing": True})
    config = tiny_config(
        data=DataConfig(source="embedded", feed="lines"), recipe=recipe, steps=24, seed=3, on_wrong_link="record"
    )
    ended = Started(config, tmp_path, cache).wait()
    assert ended.exit_code == 0, ended.output
    of_rank = [ended.steps(0), ended.steps(1)]
    blank = [first.real_tokens + second.real_tokens == 2 for first, second in zip(*of_rank, strict=True)]
    assert any(blank)
    assert [line.loss is None for line in of_rank[0]] == blank


@pytest.mark.parametrize(
    ("zero", "sentence"),
    [
        ({"stage": 3}, "engine direct does ZeRO stage 1 on the device, not stage 3; set stage 1"),
        (
            {"stage": 1, "offload_optimizer": True},
            "not stage 1 with the optimizer offloaded; set stage 1 without offload, or engine deepspeed",
        ),
    ],
)
def test_what_the_engine_can_t_do_is_refused(zero: dict[str, object], sentence: str) -> None:
    values = DIRECT.model_dump() | {"zero": ZERO_3.model_dump() | zero}
    with pytest.raises(ValueError, match=sentence):
        RecipeConfig.model_validate(values)


@pytest.mark.torch
def test_a_full_disk_ends_the_run_and_leaves_the_last_good_checkpoint(tmp_path: Path, cache: Path) -> None:
    config = CONFIG.model_copy(update={"steps": 4000, "checkpoint_every_steps": 20})
    started = Started(config, tmp_path, cache)
    folder = cache / "checkpoints" / config.job_name
    started.wait_for((folder / "checkpoint-20" / "complete-rank-00001.json").is_file)
    last = folder / "checkpoint-200"
    last.mkdir()
    for rank in (0, 1):
        (last / f"direct-rank-{rank:05d}.pt").symlink_to("/dev/full")
    ended = started.wait()
    assert ended.exit_code != 0
    assert f"{last}: can't be saved: " in ended.output
    assert "the last complete one is checkpoint-180" in ended.output
    assert ended.record.status == "failed"
    assert not last.exists()


@pytest.mark.torch
def test_a_step_that_is_no_number_is_left_out_where_the_config_says_so(tmp_path: Path, cache: Path) -> None:
    recipe = DIRECT.model_copy(update={"learning_rate": 1e36})
    ended = Started(tiny_config(recipe=recipe, on_nan_loss="skip"), tmp_path, cache).wait()
    assert ended.exit_code == 0, ended.output
    assert (ended.record.status, ended.record.verdict.outcome) == ("complete", "INVALID")
    finite = [line.finite for line in ended.steps()]
    assert finite == [True] + [False] * 5
