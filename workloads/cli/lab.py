"""`topo lab`: the arms of an experiment, here and now, and the page that compares them."""

from datetime import UTC, datetime
from pathlib import Path

import click

from workloads.cli.lab_progress import shown
from workloads.cli.report import Vary, write_report
from workloads.comparison.records import Run, read_runs
from workloads.lab.experiments import load_experiment
from workloads.lab.machine import detect_machine
from workloads.lab.run import LabOutcome, run_experiment

CACHE = Path("~/.cache/topolab")
"""Data and tokenizers, between labs."""


@click.command("lab")
@click.argument("experiment", required=False)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder of the records [default: lab-out/<time>]."
)
def command(experiment: str | None, out: Path | None) -> int:
    """Run an experiment's arms on this machine and report.

    EXPERIMENT is a file or the name of a built-in one; without it the default of this machine. Records go to
    DIR/<experiment>/<run id>/ and the page to DIR/<experiment>/report.html. Exit code 1: an arm failed or its
    verdict is INVALID.
    """
    machine = detect_machine()
    planned = load_experiment(experiment, machine)
    out = out or Path("lab-out") / datetime.now(tz=UTC).strftime("%Y%m%dT%H%M%SZ")
    with shown() as observer:
        outcome = run_experiment(planned, machine, out, CACHE.expanduser(), observer)
    for failure in outcome.failures:
        click.echo(f"topo: {failure}", err=True)
    missing = sorted({turn.turn.plan.config.arm for turn in outcome.turns if turn.record is None})
    if missing:
        click.echo(f"topo: not on the page, because no record was left: {', '.join(missing)}", err=True)
    invalid = _report(outcome, out / planned.experiment.name / "report.html", planned.experiment.vary)
    return 1 if outcome.failures or invalid else 0


def _report(outcome: LabOutcome, page: Path, vary: Vary) -> bool:
    """Write the page of the records that there are; whether one of them is INVALID."""
    if not outcome.records:
        click.echo("topo: no arm left a record, so there is nothing to report", err=True)
        return True
    runs = read_runs([str(folder) for folder in outcome.records])
    for run in runs:
        click.echo(_verdict(run))
    report = write_report(runs, page, vary=vary, allow=())
    click.echo(f"\n{report.headline}\n\nreport: {page}")
    return any(run.record.verdict.outcome == "INVALID" for run in runs)


def _verdict(run: Run) -> str:
    record = run.record
    median = record.summary.step_s_median
    nothing = "no timed step" if record.config.steps else "probed"
    step = nothing if median is None else f"{median * 1000:.0f} ms a step"
    reasons = "".join(f"\n  {reason}" for reason in record.verdict.reasons)
    return f"{record.config.arm}: {record.verdict.outcome}, {step}{reasons}"
