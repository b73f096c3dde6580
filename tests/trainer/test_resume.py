"""Runs that are killed, lose a checkpoint, a disk or their numbers: what the next start makes of it."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.trainer.launching import RECIPE, ZERO_3, Ended, Started, tiny_config
from trainer.checkpoint import checkpoints_of
from trainer.config import TrainConfig
from trainer.record import StepLine

pytestmark = pytest.mark.torch

KILLS = int(os.environ.get("SOAK_ROUNDS", "2"))
"""`make soak-trainer` asks for twenty."""
EVERY = 3
CONFIG = tiny_config(steps=EVERY * (KILLS + 6), checkpoint_every_steps=EVERY, resume=True)


@pytest.fixture(scope="module")
def undisturbed(fresh_cache: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Ended:
    ended = Started(CONFIG, tmp_path_factory.mktemp("undisturbed"), fresh_cache()).wait()
    assert ended.exit_code == 0, ended.output
    return ended


def start(config: TrainConfig, folder: Path, cache: Path, restarts: int) -> Started:
    return Started(config, folder / str(restarts), cache, environment={"TOPOLAB_RESTARTS": str(restarts)})


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("checkpoint-"))


def lines_left(cache: Path) -> list[StepLine]:
    """Of all starts and ranks, a torn last line apart: a kill may come while it is written."""
    texts = [file.read_text() for file in cache.glob("records/*/steps/rank-*.jsonl")]
    whole = [line for text in texts for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [StepLine.model_validate_json(line) for line in whole]


def test_a_run_killed_at_random_steps_has_the_loss_curve_of_an_undisturbed_one(
    undisturbed: Ended, tmp_path: Path, cache: Path
) -> None:
    seed = int(os.environ.get("SOAK_SEED") or random.randrange(2**32))
    print(f"SOAK_SEED={seed} repeats it")
    chance = random.Random(seed)
    saved = 0
    for kill in range(KILLS):
        started = start(CONFIG, tmp_path, cache, kill)
        # So far at most that the kills to come have steps left to be killed in.
        started.kill_rank(chance.randint(0, 1), after_step=saved + chance.randint(1, EVERY + 1))
        assert started.wait().exit_code != 0
        saved = max(map(step_of, checkpoints_of(CONFIG, cache / "checkpoints").glob("checkpoint-*")), default=0)
        if saved > CONFIG.steps - 2 * EVERY:
            break
    last = start(CONFIG, tmp_path, cache, KILLS).wait()
    assert last.exit_code == 0, last.output
    assert (last.record.starts, last.record.verdict.outcome) == (KILLS + 1, "VALID")
    expected = undisturbed.losses()
    seen: dict[int, set[float | None]] = {}
    for line in lines_left(cache):
        seen.setdefault(line.step, set()).add(line.loss)
    assert seen == {step: {loss} for step, loss in expected.items()}


def test_a_torn_checkpoint_is_passed_over_for_the_one_before(undisturbed: Ended, tmp_path: Path, cache: Path) -> None:
    first = start(CONFIG, tmp_path, cache, 0)
    first.terminate_rank(0, after_step=2 * EVERY + 1)
    stopped_after = first.wait().steps()[-1].step
    newest = checkpoints_of(CONFIG, cache / "checkpoints") / f"checkpoint-{stopped_after}"
    shard = max(newest.rglob("*.pt"), key=lambda file: file.stat().st_size)
    shard.write_bytes(shard.read_bytes()[:-1])
    second = start(CONFIG, tmp_path, cache, 1).wait()
    assert second.exit_code == 0, second.output
    assert f"{newest}: damaged, so it doesn't count" in second.output
    after = second.record.resumed_after_step
    assert after < stopped_after
    assert after % EVERY == 0 < after
    assert second.losses() == {step: loss for step, loss in undisturbed.losses().items() if step > after}


def test_a_full_disk_ends_the_run_and_leaves_the_last_good_checkpoint(tmp_path: Path, cache: Path) -> None:
    config = tiny_config(steps=4000, checkpoint_every_steps=100, resume=True)
    started = start(config, tmp_path, cache, 0)
    folder = checkpoints_of(config, cache / "checkpoints")
    started.wait_for((folder / "checkpoint-100" / "complete-rank-00001.json").is_file)
    shards = folder / "checkpoint-200" / "global_step200"
    shards.mkdir(parents=True)
    for rank in (0, 1):
        (shards / f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt").symlink_to("/dev/full")
    ended = started.wait()
    assert ended.exit_code != 0
    assert f"{folder}/checkpoint-200: can't be saved: " in ended.output
    assert "the last complete one is checkpoint-100" in ended.output
    assert ended.record.status == "failed"
    assert not (folder / "checkpoint-200").exists()
    assert (folder / "checkpoint-100" / "complete-rank-00000.json").is_file()


def test_a_loss_that_is_no_number_ends_the_run_for_good(tmp_path: Path, cache: Path) -> None:
    config = tiny_config(recipe=RECIPE.model_copy(update={"learning_rate": 1e36}), resume=True)
    ended = start(config, tmp_path, cache, 0).wait()
    assert "exitcode  : 4" in ended.output
    record, lines = ended.record, ended.steps()
    assert (record.status, record.verdict.outcome) == ("stopped-nan-loss", "INVALID")
    assert [line.finite for line in lines] == [True] * (len(lines) - 1) + [False]
    assert 1 < len(lines) < config.steps
    again = start(config, tmp_path, cache, 1).wait()
    assert f"an earlier start ended for good: `stopped-nan-loss` after step {len(lines)}" in again.output
    assert not (tmp_path / "1" / "records").exists()


def test_a_step_that_is_no_number_can_be_left_out(tmp_path: Path, cache: Path) -> None:
    recipe = RECIPE.model_copy(
        update={"learning_rate": 1e36, "zero": ZERO_3.model_copy(update={"stage": 1}), "accumulation": 1}
    )
    ended = Started(tiny_config(recipe=recipe, on_nan_loss="skip"), tmp_path, cache).wait()
    assert ended.exit_code == 0, ended.output
    assert (ended.record.status, ended.record.verdict.outcome) == ("complete", "INVALID")
    assert "was not finite, and its update was left out" in " ".join(ended.record.verdict.reasons)
    assert len(ended.steps()) == 6


def test_another_run_s_checkpoint_is_refused(tmp_path: Path, cache: Path) -> None:
    config = tiny_config(checkpoint_every_steps=3, steps=4, resume=True)
    assert start(config, tmp_path / "first", cache, 0).wait().exit_code == 0
    other = start(config.model_copy(update={"seed": 8}), tmp_path / "other", cache, 0).wait()
    assert "checkpoint-3: written with seed 7, this run has 8; raise run.attempt" in other.output
    plain = start(config.model_copy(update={"resume": False}), tmp_path / "plain", cache, 0).wait()
    assert "holds checkpoint-3 of an earlier run of this name" in plain.output
