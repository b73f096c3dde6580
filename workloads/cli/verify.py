"""`topo verify`: nobody has to believe a record."""

import click

from workloads.comparison.records import read_runs
from workloads.comparison.verification import unchecked, verify


@click.command("verify")
@click.argument("locations", nargs=-1, required=True, metavar="(DIR | URI)...")
def command(locations: tuple[str, ...]) -> int:
    """Recompute every figure of run records from their raw lines.

    Transports, summary, verdict, the clock's steps and what the plan expected are computed again; exit code 1
    where anything differs or a log is missing.
    """
    differing = 0
    for run in read_runs(locations):
        differences = verify(run)
        differing += bool(differences)
        outcome = run.record.verdict.outcome
        click.echo(f"{run.record.run_id}: {outcome}, {'differs' if differences else 'as recorded'}")
        for difference in differences:
            click.echo(f"  {difference}")
        for sentence in unchecked(run):
            click.echo(f"  not checked: {sentence}")
    return 1 if differing else 0
