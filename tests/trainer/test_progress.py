"""Each step's line says how far a run is, and `topo watch` reads it."""

import pytest

from trainer.progress import progress_line
from workloads.operations.watch.progress import progress


@pytest.mark.parametrize(
    ("step", "recent_s", "left"),
    [(12, [0.41], "11 s"), (10, [30.0, 9.0, 10.0], "5 min"), (1, [600.0], "6 h 30 min"), (40, [1.0], "0 s")],
)
def test_a_line_has_the_step_its_seconds_the_loss_and_what_is_left(step: int, recent_s: list[float], left: str) -> None:
    line = progress_line(step, 40, 5.2134, recent_s)
    assert line == f"step {step} of 40: {recent_s[-1]:.4g} s, loss 5.213, {left} left"


def test_the_watch_reads_the_line() -> None:
    found = progress(None, [f"[default0]:{progress_line(12, 40, float('nan'), [0.5])}"])
    assert found is not None
    assert (found.words, found.step_s, found.left_s) == ("step 12 of 40", 0.5, 14.0)
