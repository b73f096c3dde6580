"""`topo render`: the Kubernetes objects of an arm, as they would be applied."""

from pathlib import Path

import click

from workloads.cli.arms import planned
from workloads.cli.output import write_whole
from workloads.rendering.bindings import Bindings, Document
from workloads.rendering.manifests import documents
from workloads.rendering.yaml_text import to_yaml


@click.command("render")
@click.argument("what", metavar="(TOPOLOGY | STACK FILE)")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="One file a document, there.")
def command(what: str, out: Path | None) -> None:
    """Print the Kubernetes objects of a topology or stack file.

    Ids that only a made resource knows stand as ${subnet} and the like.
    """
    rendered = documents(planned(what), Bindings.placeholders())
    if out is None:
        click.echo(to_yaml(rendered), nl=False)
        return
    for number, document in enumerate(rendered):
        path = out / _file_name(number, document)
        write_whole(path, to_yaml([document]).encode())
        click.echo(str(path))


def _file_name(number: int, document: Document) -> str:
    return f"{number:02}-{document['kind'].lower()}-{document['metadata']['name']}.yaml"
