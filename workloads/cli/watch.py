"""`topo watch`: a run from capacity to its end, on one screen."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from workloads.cli.arms import planned
from workloads.cli.output import as_json, print_json
from workloads.cli.stack_job import job_of
from workloads.cli.stack_place import file_of
from workloads.cli.watch_lines import Expected, document, expected_of, line, rows
from workloads.operations.pending.observe import connect
from workloads.operations.watch.look import look, suspend
from workloads.operations.watch.watched import Watched

Show = Callable[[Watched], None]
_AFTER = {
    "complete": "the run is over: `./topo collect {stack}` fetches its record; its nodes go when they are empty for "
    "10 minutes, the rest with `pulumi destroy`",
    "failed": "the run failed: `./topo why-pending {stack}` says why; its nodes go when they are empty for 10 minutes",
    "suspended": "the run is suspended and holds no pod; its nodes go when they are empty for 10 minutes",
    "absent": "there is nothing to watch: run `pulumi up`",
}


@click.command("watch")
@click.argument("stack", metavar="STACK")
@click.option("--kubeconfig", type=click.Path(path_type=Path), metavar="FILE", help="Of the cluster; the ambient one.")
@click.option("--context", metavar="NAME", help="Of the kubeconfig; its current one.")
@click.option("--every", type=click.FloatRange(min=1), default=5.0, show_default=True, metavar="SECONDS")
@click.option("--once", is_flag=True, help="Look once and end.")
@click.option("--cancel", is_flag=True, help="Suspend the run, after a question; its platform stays.")
@as_json
def command(
    *,
    stack: str,
    kubeconfig: Path | None,
    context: str | None,
    every: float,
    once: bool,
    cancel: bool,
    as_json: bool,
) -> int:
    """Watch a run from capacity to its end.

    STACK is a stack's name (Pulumi is asked which job is its) or a stack file; where the file is here, what it
    predicts stands beside what is measured. One screen on a terminal, elsewhere a line for each change; --json looks
    once. Ctrl-C leaves the run alone. Exit code 0 where it completed (with --once: where it goes on), else 1.
    """
    api = connect(kubeconfig, context)
    namespace, job = job_of(stack)
    if cancel:
        return _cancel(api, namespace, job)
    expected = expected_of(_plan(stack))
    seen = look(api, namespace=namespace, job=job)
    if as_json:
        print_json(document(seen, expected))
    elif once or seen.end is not None:
        _print(seen, expected)
    else:
        seen = _follow(seen, lambda: look(api, namespace=namespace, job=job), expected, every)
    if seen.end is not None and not as_json:
        click.echo(_AFTER[seen.end].format(stack=stack))
    return 0 if seen.end in (None, "complete") else 1


def _plan(stack: str) -> Any:
    return planned(str(file_of(stack))) if file_of(stack).exists() else None


def _cancel(api: Any, namespace: str, job: str) -> int:
    click.confirm(f"suspend {job}? Its pods end and what they trained is lost", default=False, abort=True, err=True)
    suspend(api, namespace=namespace, job=job)
    click.echo(f"{job} is suspended; its nodes go when they are empty for 10 minutes, the platform stays")
    click.echo("to run again: raise run.attempt in the stack file, then `pulumi up`")
    return 0


def _follow(seen: Watched, again: Callable[[], Watched], expected: Expected, every: float) -> Watched:
    """Until the run ends. A cluster that doesn't answer for a while is told and asked again."""
    with _screen(expected) as show:
        show(seen)
        while seen.end is None:
            time.sleep(every)
            try:
                seen = again()
            except ValueError as error:
                click.echo(str(error), err=True)
                continue
            show(seen)
    return seen


@contextlib.contextmanager
def _screen(expected: Expected) -> Iterator[Show]:
    if not sys.stdout.isatty():
        yield _lines()
        return
    with Live(console=Console(highlight=False), auto_refresh=False) as live:
        yield lambda seen: live.update(_table(seen, expected), refresh=True)


def _lines() -> Show:
    """A line where something changed but the dollars, which always do."""
    last: list[tuple[object, ...]] = []

    def show(seen: Watched) -> None:
        state = (seen.phase, seen.progress, seen.findings, seen.end)
        if last != [state]:
            click.echo(f"{datetime.now().astimezone():%H:%M:%S} {line(seen)}")
            last[:] = [state]

    return show


def _table(seen: Watched, expected: Expected) -> Table:
    table = Table.grid(padding=(0, 2))
    for label, text in rows(seen, expected):
        table.add_row(Text(label, style="dim"), Text(text, style="bold red" if label == "why" else ""))
    return table


def _print(seen: Watched, expected: Expected) -> None:
    for label, text in rows(seen, expected):
        click.echo(f"{label:<9} {text}")
