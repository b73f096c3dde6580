"""Steps of a job that isn't ours: from its marks, or from what it prints."""

import json
import math
from pathlib import Path

import pytest

from trainer.mark import FOLDER_VARIABLE, mark
from trainer.marks import Mark, marks_of, printed, step_lines


def at(step: int, unix_s: float, **known: float) -> Mark:
    values = {"seconds": None, "loss": None, "tokens": 0} | known
    return Mark(step=step, unix_s=unix_s, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "local_rank"),
    [
        ('{"step": 3, "loss": 2.5, "seconds": 0.4, "tokens": 4096}\n', 0),
        ('[default1]:{"step": 3, "loss": 2.5, "seconds": 0.4, "tokens": 4096}\n', 1),
        ('[rank2]:INFO 12:00 metrics {"step": 3, "loss": 2.5, "seconds": 0.4, "tokens": 4096}\n', 2),
    ],
)
def test_a_printed_line_with_a_step_is_a_mark_of_the_rank_that_its_prefix_names(line: str, local_rank: int) -> None:
    found = printed(line, 7.0)
    assert found is not None
    assert found.local_rank == local_rank
    assert found.mark == at(3, 7.0, loss=2.5, seconds=0.4, tokens=4096)


@pytest.mark.parametrize(
    "line",
    [
        "step 3 of 10\n",
        '{"loss": 2.5}\n',
        '{"step": 0}\n',
        '{"step": "3"}\n',
        '{"step": true}\n',
        "{'step': 3}\n",
        '[{"step": 3}]\n',
        '{"step": 3\n',
    ],
)
def test_any_other_line_is_none(line: str) -> None:
    assert printed(line, 7.0) is None


def test_marks_are_written_only_under_prove_and_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    mark(1)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setenv("RANK", "3")
    mark(1, loss=2.5, tokens=64)
    mark(2, loss=math.nan)
    first, second = marks_of((tmp_path / "rank-00003.jsonl").read_text())
    assert (first.step, first.loss, first.tokens) == (1, 2.5, 64)
    assert second.unix_s >= first.unix_s > 1e9
    assert second.loss is not None
    assert math.isnan(second.loss)


def test_a_torn_last_mark_is_left_out() -> None:
    whole = json.dumps({"step": 1, "unix_s": 5.0, "loss": None, "tokens": None})
    assert marks_of(f'{whole}\n{{"step": 2, "unix') == [at(1, 5.0)]


def test_a_step_takes_the_time_since_the_mark_before_and_the_first_only_starts_the_clock() -> None:
    lines = step_lines([at(1, 10.0), at(2, 10.5), at(3, 12.0)], warmup_steps=1)
    assert [(line.step, line.seconds, line.phase) for line in lines] == [(2, 0.5, "warmup"), (3, 1.5, "timed")]


def test_marks_of_every_tenth_step_share_their_time_out() -> None:
    assert [line.seconds for line in step_lines([at(10, 0.0), at(20, 5.0)], warmup_steps=0)] == [0.5]


def test_the_job_s_own_seconds_win_and_its_first_step_is_a_step() -> None:
    lines = step_lines([at(1, 10.0, seconds=0.3), at(2, 99.0, seconds=0.2)], warmup_steps=1)
    assert [(line.seconds, line.phase) for line in lines] == [(0.3, "warmup"), (0.2, "timed")]


def test_a_step_told_twice_or_backwards_counts_once() -> None:
    lines = step_lines([at(1, 1.0), at(2, 2.0), at(2, 2.5), at(1, 3.0), at(3, 4.0)], warmup_steps=0)
    assert [(line.step, line.seconds) for line in lines] == [(2, 1.0), (3, 2.0)]


def test_a_loss_that_is_no_number_is_said_and_an_absent_one_is_not() -> None:
    lines = step_lines([at(1, 1.0), at(2, 2.0, loss=math.nan), at(3, 3.0)], warmup_steps=0)
    assert [(line.loss, line.finite) for line in lines] == [(None, False), (None, True)]
