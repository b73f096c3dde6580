"""The timed window holds each step's traffic once, also that of an engine whose traffic outlasts its step."""

from pathlib import Path

import pytest
from transformers import TrainerControl, TrainerState

from tests.trainer.launching import tiny_config
from trainer import loop, steps
from trainer.checkpoint import StopWish
from trainer.loop import Agreed, Loop
from trainer.steps import StepWriter

pytestmark = pytest.mark.torch


class Clock:
    """A clock that goes when it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    def go(self, seconds: float) -> None:
        self.now += seconds


def test_the_first_timed_step_pays_for_the_gather_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    for module in (loop, steps):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(Loop, "_sample", lambda *_: clock.go(3))  # counters are book-keeping
    writer = StepWriter(tmp_path / "steps.jsonl")
    timed = Loop(tiny_config(warmup_steps=0), 0, StopWish(), writer, lambda: True)
    timed.settle = lambda: clock.go(5)
    state = TrainerState()
    timed.begin(state, TrainerControl())
    clock.go(2)
    state.global_step = 1
    timed.ended(state, TrainerControl(), Agreed(loss=6.5, gradient_norm=1.0, stop=False, finite=True))
    assert [line.seconds for line in writer.finished] == [5 + 2]
