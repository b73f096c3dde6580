"""`topo why-pending`: events and conditions, joined into one sentence and one remedy."""

from pathlib import Path

import click

from workloads.cli.output import as_json, print_json
from workloads.cli.stack_job import job_of
from workloads.operations.pending.explain import Answer, Finding, explain
from workloads.operations.pending.observe import connect, observe


@click.command("why-pending")
@click.argument("stack", metavar="STACK")
@click.option("--kubeconfig", type=click.Path(path_type=Path), metavar="FILE", help="Of the cluster; the ambient one.")
@click.option("--context", metavar="NAME", help="Of the kubeconfig; its current one.")
@as_json
def command(*, stack: str, kubeconfig: Path | None, context: str | None, as_json: bool) -> int:
    """Say why a stack's pods don't run, and what to do.

    STACK is a stack's name (Pulumi is asked which job is its) or a stack file. Exit code 0 where every pod
    runs, or each that waits has a reason; 1 where there is no such job, or the cluster names no reason.
    """
    # A file that isn't there is told before Pulumi is waited for.
    api = connect(kubeconfig, context)
    namespace, job = job_of(stack)
    answer = explain(job, observe(api, namespace=namespace, job=job))
    if as_json:
        print_json(_document(answer))
    else:
        _show(answer)
    return 0 if answer.is_explained else 1


def _show(answer: Answer) -> None:
    counted = ", ".join(f"{number} {phase}" for phase, number in sorted(answer.phases.items()))
    click.echo(f"{answer.job}: {counted or 'no pods'}")
    for finding in answer.findings:
        click.echo()
        click.echo(f"{_who(finding)}{finding.sentence}.")
        click.echo(f"  remedy: {finding.remedy}")


def _who(finding: Finding) -> str:
    if not finding.pods:
        return ""
    others = f" and {len(finding.pods) - 1} more" if len(finding.pods) > 1 else ""
    return f"{finding.pods[0]}{others}: "


def _document(answer: Answer) -> dict[str, object]:
    return {
        "trainJob": answer.job,
        "pods": dict(sorted(answer.phases.items())),
        "findings": [
            {"sentence": finding.sentence, "remedy": finding.remedy, "pods": list(finding.pods)}
            for finding in answer.findings
        ],
        "explained": answer.is_explained,
    }
