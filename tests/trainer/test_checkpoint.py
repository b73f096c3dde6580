"""Only a checkpoint that every rank finished can be resumed from."""

import os
import signal
from pathlib import Path

import pytest

from tests.trainer.launching import RECIPE, ZERO_3, tiny_config
from trainer.checkpoint import StopWish, checkpoints_of, complete_steps, mark_complete, newest_common

CONFIG = tiny_config()


def _checkpoint(folder: Path, step: int, *ranks: int, state: bool = True) -> Path:
    checkpoint = folder / f"checkpoint-{step}"
    checkpoint.mkdir()
    if state:
        (checkpoint / "trainer_state.json").write_text("{}")
    for rank in ranks:
        mark_complete(CONFIG, checkpoint, rank)
    return checkpoint


def test_a_checkpoint_counts_for_the_ranks_that_marked_it(tmp_path: Path) -> None:
    both, only_first = _checkpoint(tmp_path, 10, 0, 1), _checkpoint(tmp_path, 20, 0)
    assert complete_steps(CONFIG, tmp_path, 0) == {10: both, 20: only_first}
    assert complete_steps(CONFIG, tmp_path, 1) == {10: both}


def test_a_checkpoint_without_common_state_or_of_another_name_doesn_t_count(tmp_path: Path) -> None:
    _checkpoint(tmp_path, 10, 0, state=False)
    (tmp_path / "checkpoint-last").mkdir()
    assert complete_steps(CONFIG, tmp_path, 0) == {}
    assert complete_steps(CONFIG, tmp_path / "absent", 0) == {}


def test_the_newest_common_step_wins() -> None:
    assert newest_common([[10, 20, 30], [20, 10], [10, 20, 40]]) == 20
    assert newest_common([[10], [20]]) is None
    assert newest_common([[], []]) is None


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (tiny_config(ranks_per_pod=4), "written with ranks 2, this run has 4"),
        (
            tiny_config(recipe=RECIPE.model_copy(update={"zero": ZERO_3.model_copy(update={"stage": 1})})),
            "written with ZeRO stage 3, this run has 1",
        ),
        (
            tiny_config(recipe=RECIPE.model_copy(update={"accumulation": 1})),
            "written with sequences a step 8, this run has 4",
        ),
    ],
)
def test_another_arrangement_is_refused_by_name(tmp_path: Path, config, sentence: str) -> None:
    _checkpoint(tmp_path, 10, 0)
    with pytest.raises(ValueError, match=sentence):
        complete_steps(config, tmp_path, 0)


def test_a_damaged_mark_is_refused(tmp_path: Path) -> None:
    checkpoint = _checkpoint(tmp_path, 10, 0)
    (checkpoint / "complete-rank-00000.json").write_text('{"ranks": 2')
    with pytest.raises(ValueError, match="is no mark of a complete checkpoint; delete the checkpoint"):
        complete_steps(CONFIG, tmp_path, 0)


def test_jobs_keep_their_checkpoints_apart(tmp_path: Path) -> None:
    other = tiny_config(job_name="test-2")
    assert checkpoints_of(CONFIG, tmp_path) != checkpoints_of(other, tmp_path)


def test_sigterm_is_noted_and_not_died_of() -> None:
    wish, before = StopWish(), signal.getsignal(signal.SIGTERM)
    try:
        wish.listen()
        assert not wish.raised
        os.kill(os.getpid(), signal.SIGTERM)
        assert wish.raised
    finally:
        signal.signal(signal.SIGTERM, before)
