"""What verbs print: a table for people, or JSON for programs."""

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
"""The option of every verb that prints a table."""


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=2))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None) -> None:
    """A table on stdout: drawn on a terminal, aligned plain text elsewhere, where nothing is cut."""
    if title:
        click.echo(title)
    if sys.stdout.isatty():
        _draw(columns, rows)
    else:
        click.echo(plain_table([columns, *rows]))
    click.echo()


def plain_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as aligned lines."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _draw(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    # The first column names the row: a name that is broken can't be copied.
    headers = (Column(name, overflow="fold", no_wrap=position == 0) for position, name in enumerate(columns))
    table = Table(*headers, box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(table)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that whoever looks sees all of it or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as part:
        temporary = Path(part.name)
        try:
            part.write(content)
            part.flush()
            os.fchmod(part.fileno(), 0o644)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
