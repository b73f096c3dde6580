"""`topo render`: the Kubernetes objects of an arm, as they would be applied."""

from pathlib import Path

import click

from workloads.cli.arms import planned
from workloads.cli.output import write_whole
from workloads.planning.plan import Plan
from workloads.rendering.bindings import Bindings, Document
from workloads.rendering.manifests import documents
from workloads.rendering.yaml_text import to_yaml


@click.command("render")
@click.argument("what", metavar="(TOPOLOGY | STACK FILE)")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="One file a document, there.")
@click.option(
    "--config", is_flag=True, help="The trainer's one file alone, as JSON: for `python -m trainer.prove --config`."
)
def command(what: str, out: Path | None, config: bool) -> None:
    """Print the Kubernetes objects of a topology or stack file.

    Ids that only a made resource knows stand as ${subnet} and the like.
    """
    plan = planned(what)
    rendered = documents(plan, Bindings.placeholders())
    if config:
        _print_config(plan, out)
        return
    if out is None:
        click.echo(to_yaml(rendered), nl=False)
        return
    for number, document in enumerate(rendered):
        path = out / _file_name(number, document)
        write_whole(path, to_yaml([document]).encode())
        click.echo(str(path))


def _print_config(plan: Plan, out: Path | None) -> None:
    if out is not None:
        raise ValueError(f"--config with --out {out}: the one file goes to stdout; leave --out away")
    click.echo(plan.config.model_dump_json(indent=2))


def _file_name(number: int, document: Document) -> str:
    return f"{number:02}-{document['kind'].lower()}-{document['metadata']['name']}.yaml"
