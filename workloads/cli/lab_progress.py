"""What a person sees while the lab runs: a moving line on a terminal, a line a turn elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from workloads.cli.units import in_bytes, in_seconds
from workloads.lab.events import Event, LinksCounted, Noted, PodExited, PodStarted
from workloads.lab.run import Observer, Turn, TurnOutcome


@contextmanager
def shown() -> Iterator[Observer]:
    """An observer that says what happens on standard error."""
    console = Console(stderr=True, highlight=False)
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console, disable=not console.is_terminal, transient=True,
    ) as progress:  # fmt: skip
        lines = _Lines(progress)
        yield Observer(turn_begins=lines.begin, event=lines.tell, turn_ends=lines.end)


class _Lines:
    """The sentences; each turn's notes are said once."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.task = progress.add_task("", total=None)
        self.began = 0.0
        self.noted: set[str] = set()

    def begin(self, turn: Turn) -> None:
        self.began = time.monotonic()
        self.progress.update(self.task, total=turn.of, completed=turn.number - 1)
        self._say(f"{_name(turn)}: {turn.plan.topology.name}, {turn.plan.config.steps} steps")

    def tell(self, turn: Turn, event: Event) -> None:
        match event:
            case Noted(sentence) if sentence not in self.noted:
                self.noted.add(sentence)
                self._print(f"  {sentence}")
            case PodStarted(pod):
                self._say(f"{_name(turn)}: {pod} started")
            case LinksCounted(pods):
                sent = sum(link.sent for link in pods.values())
                spent = in_seconds(time.monotonic() - self.began)
                self.progress.update(self.task, description=f"{_name(turn)}: {spent}, {in_bytes(sent)} sent")
            case PodExited(pod, exit_code) if exit_code and not event.ended_by_lab:
                self._say(f"{_name(turn)}: {pod} ended with {exit_code}")
            case _:
                pass

    def end(self, outcome: TurnOutcome) -> None:
        self.progress.update(self.task, completed=outcome.turn.number)
        took = in_seconds(outcome.arm.seconds)
        self._print(f"{_name(outcome.turn)}: {'failed' if outcome.failure else 'done'} in {took}")

    def _say(self, sentence: str) -> None:
        """On a terminal the moving line says it."""
        self.progress.update(self.task, description=sentence)

    def _print(self, sentence: str) -> None:
        if self.progress.console.is_terminal:
            self.progress.console.print(sentence, markup=False)
        else:
            click.echo(sentence, err=True)


def _name(turn: Turn) -> str:
    return f"{turn.number}/{turn.of} {turn.plan.config.arm}"
