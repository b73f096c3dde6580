"""Only a checkpoint that every rank finished can be resumed from."""

import os
import signal
from pathlib import Path

import pytest

from tests.trainer.launching import RECIPE, ZERO_3, tiny_config
from trainer.checkpoint import (
    StopWish,
    checkpoints_of,
    complete_steps,
    end_for_good,
    mark_complete,
    newest_common,
    newest_marked,
    refuse_finished,
    refuse_leftovers,
    remove_after,
)

CONFIG = tiny_config()


def _checkpoint(folder: Path, step: int, *ranks: int) -> Path:
    checkpoint = folder / f"checkpoint-{step}"
    (checkpoint / f"global_step{step}").mkdir(parents=True)
    (checkpoint / "trainer_state.json").write_text("{}")
    for rank in (0, 1):
        (checkpoint / f"global_step{step}" / f"rank_{rank}.pt").write_bytes(b"shard")
    for rank in ranks:
        mark_complete(CONFIG, checkpoint, rank)
    return checkpoint


def test_a_checkpoint_counts_for_the_ranks_that_marked_it(tmp_path: Path) -> None:
    both, only_first = _checkpoint(tmp_path, 10, 0, 1), _checkpoint(tmp_path, 20, 0)
    assert complete_steps(CONFIG, tmp_path, 0) == {10: both, 20: only_first}
    assert complete_steps(CONFIG, tmp_path, 1) == {10: both}


def test_a_folder_of_another_name_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-last").mkdir()
    assert complete_steps(CONFIG, tmp_path, 0) == {}
    assert complete_steps(CONFIG, tmp_path / "absent", 0) == {}


def test_a_checkpoint_that_lost_a_file_or_a_part_of_one_is_named_and_doesn_t_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, torn, robbed = (_checkpoint(tmp_path, step, 0) for step in (10, 20, 30))
    (torn / "global_step20" / "rank_1.pt").write_bytes(b"sha")
    (robbed / "trainer_state.json").unlink()
    assert complete_steps(CONFIG, tmp_path, 0) == {10: whole}
    said = capsys.readouterr().err
    assert f"{torn}: damaged, so it doesn't count: global_step20/rank_1.pt has 3 bytes, 5 were written" in said
    assert f"{robbed}: damaged, so it doesn't count: trainer_state.json is gone" in said


def test_the_newest_common_step_wins() -> None:
    assert newest_common([[10, 20, 30], [20, 10], [10, 20, 40]]) == 20
    assert newest_common([[10], [20]]) is None
    assert newest_common([[], []]) is None


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (tiny_config(ranks_per_pod=4), "written with ranks 2, this run has 4; raise run.attempt"),
        (tiny_config(seed=8), "written with seed 7, this run has 8"),
        (tiny_config(steps=7), "written with steps 6, this run has 7"),
        (tiny_config(sequence_length=64), "written with sequence_length 32, this run has 64"),
        (
            tiny_config(recipe=RECIPE.model_copy(update={"zero": ZERO_3.model_copy(update={"stage": 1})})),
            "written with recipe.zero.stage 3, this run has 1",
        ),
        (
            tiny_config(recipe=RECIPE.model_copy(update={"engine": "direct"})),
            'written with recipe.engine "deepspeed", this run has "direct"',
        ),
        (
            tiny_config(recipe=RECIPE.model_copy(update={"accumulation": 1})),
            "written with recipe.accumulation 2, this run has 1",
        ),
    ],
)
def test_another_arrangement_is_refused_by_name(tmp_path: Path, config, sentence: str) -> None:
    _checkpoint(tmp_path, 10, 0)
    with pytest.raises(ValueError, match=sentence):
        complete_steps(config, tmp_path, 0)


def test_a_damaged_mark_is_refused(tmp_path: Path) -> None:
    checkpoint = _checkpoint(tmp_path, 10, 0)
    (checkpoint / "complete-rank-00000.json").write_text('{"files": 2')
    with pytest.raises(ValueError, match="is no mark of a complete checkpoint; delete the checkpoint"):
        complete_steps(CONFIG, tmp_path, 0)


def test_the_same_work_under_another_name_is_no_other_work(tmp_path: Path) -> None:
    checkpoint = _checkpoint(tmp_path, 10, 0)
    renamed = tiny_config(arm="other", recipe=RECIPE.model_copy(update={"name": "other", "omp_threads": 4}))
    assert complete_steps(renamed, tmp_path, 0) == {10: checkpoint}


def test_what_lies_after_the_step_of_the_resume_goes(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        _checkpoint(tmp_path, step, 0)
    remove_after(tmp_path, 10)
    assert [found.name for found in tmp_path.iterdir()] == ["checkpoint-10"]


def test_a_run_that_doesn_t_resume_leaves_an_earlier_run_s_checkpoints_alone(tmp_path: Path) -> None:
    refuse_leftovers(tmp_path)
    for step in (9, 10):
        _checkpoint(tmp_path, step, 0)
    with pytest.raises(ValueError, match=r"holds checkpoint-10 of an earlier run of this name; raise run\.attempt"):
        refuse_leftovers(tmp_path)


def test_a_finished_run_isn_t_begun_again(tmp_path: Path) -> None:
    refuse_finished(CONFIG, tmp_path, None)
    refuse_finished(CONFIG, tmp_path, 5)
    with pytest.raises(ValueError, match=r"step 6 of 6 is saved there: the run is over; raise run\.attempt"):
        refuse_finished(CONFIG, tmp_path, 6)


def test_what_ended_for_good_is_told_to_every_later_start(tmp_path: Path) -> None:
    end_for_good(tmp_path / "job", "`stopped-wrong-link` after step 2")
    with pytest.raises(ValueError, match="test-1: an earlier start ended for good: `stopped-wrong-link` after step 2"):
        refuse_finished(CONFIG, tmp_path / "job", None)


def test_the_newest_marked_checkpoint_is_named(tmp_path: Path) -> None:
    assert newest_marked(tmp_path) == "there is no complete one yet"
    for step, ranks in ((8, (0,)), (12, (0,)), (16, ())):
        _checkpoint(tmp_path, step, *ranks)
    assert newest_marked(tmp_path) == "the last complete one is checkpoint-12"


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
