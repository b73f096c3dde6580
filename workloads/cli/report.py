"""`topo report`: one page that compares runs, and nothing on it typed by hand."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

import click

from workloads.cli.output import write_whole
from workloads.comparison.probe_report import (
    ProbeReport,
    build_probe_report,
    is_probe_only,
    probe_html,
    probe_markdown,
)
from workloads.comparison.records import Run, read_runs
from workloads.comparison.report import Report, build_report, html, markdown

Vary = Literal["topology", "recipe", "best"]


@click.command("report")
@click.argument("locations", nargs=-1, required=True, metavar="(DIR | URI)...")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True, metavar="FILE.html",
    help="The page; a name that ends with .md gets Markdown.",
)  # fmt: skip
@click.option("--vary", type=click.Choice(["topology", "recipe", "best"]), help="What the runs differ in on purpose.")
@click.option("--allow", multiple=True, metavar="KEY", help="A key that may differ all the same; once for each.")
def command(locations: tuple[str, ...], out: Path, vary: Vary | None, allow: tuple[str, ...]) -> None:
    """Write the page that compares runs.

    Runs that did different work are refused, with the keys that differ. Every figure is computed from raw
    lines; a run whose record says otherwise is shown as INVALID.
    """
    report = write_report(read_runs(locations), out, vary=vary, allow=allow)
    for arm, _, reasons in report.reasons:
        for reason in reasons:
            click.echo(f"topo: arm {arm}: {reason}", err=True)
    click.echo(report.headline)
    click.echo(str(out))


def write_report(runs: Sequence[Run], out: Path, *, vary: Vary | None, allow: Collection[str]) -> Report | ProbeReport:
    """Compare the runs and write the page; ValueError where they can't be compared.

    Runs that were only probed get a page of their own.
    """
    in_markdown = out.suffix == ".md"
    if any(map(is_probe_only, runs)):
        probed = build_probe_report(runs, vary=vary, allow=allow)
        write_whole(out, (probe_markdown(probed) if in_markdown else probe_html(probed)).encode())
        return probed
    report = build_report(runs, vary=vary, allow=allow)
    write_whole(out, (markdown(report) if in_markdown else html(report)).encode())
    return report
