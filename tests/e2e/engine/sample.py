"""A small program of its own, for what concerns the engine alone: no cloud, no cluster, resources in this machine."""

from pathlib import Path

from tests.e2e.engine.project import link_environment

_PROJECT = """\
name: sample
runtime:
  name: python
  options:
    toolchain: pip
    virtualenv: .venv
"""

_MODULE = '''\
"""Resources that write their name into a file, and wait for a gate where one is named."""

import time
from pathlib import Path

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, Resource, ResourceProvider, UpdateResult


class LeafProvider(ResourceProvider):
    def create(self, properties):
        if properties["refused"]:
            raise ValueError(f"leaf {properties['leaf']} is refused")
        if properties["gate"]:
            note(properties, "wait")
        while properties["gate"] and not Path(properties["gate"]).exists():
            time.sleep(0.02)
        note(properties, "create")
        return CreateResult(id_=properties["leaf"], outs=properties)

    def diff(self, _id, olds, news):
        replaces = ["kind"] if olds["kind"] != news["kind"] else []
        changed = any(olds[name] != news[name] for name in ("kind", "text"))
        return DiffResult(changes=changed, replaces=replaces, delete_before_replace=True)

    def update(self, _id, olds, news):
        note(news, "update")
        return UpdateResult(outs=news)

    def delete(self, _id, properties):
        note(properties, "delete")


def note(properties, verb):
    with Path(properties["log"]).open("a") as log:
        log.write(f"{verb} {properties['leaf']}\\n")


class Leaf(Resource):
    def __init__(self, name, *, log, refused=False, gate="", text="", kind="", depends_on=None):
        given = {"leaf": name, "log": log, "refused": refused, "gate": gate, "text": text, "kind": kind}
        super().__init__(LeafProvider(), name, given, pulumi.ResourceOptions(depends_on=depends_on))
'''

_PROGRAM = '''\
"""A chain of leaves."""

import pulumi
from leaf import Leaf

config = pulumi.Config()
if config.get("sentence"):
    raise pulumi.RunError(config.require("sentence"))
if config.get("crash"):
    raise RuntimeError(config.require("crash"))

last = None
for number in range(config.get_int("leaves") or 3):
    last = Leaf(
        f"leaf-{number}",
        log=config.require("log"),
        refused=config.get_int("refused") == number,
        gate=config.get("gate") if config.get_int("gated") == number else "",
        text=config.get_secret("token") or config.get("text") or "",
        kind=config.get("kind") or "",
        depends_on=[last] if last else None,
    )
pulumi.export("stack", pulumi.get_stack())
pulumi.export("project", pulumi.get_project())
pulumi.export("organization", pulumi.get_organization())
pulumi.export("token", config.get_secret("token"))
pulumi.export("mapping", config.get_object("mapping"))
pulumi.export("preview", pulumi.runtime.is_dry_run())
'''


def write_sample(folder: Path) -> Path:
    """The project in a folder of its own."""
    link_environment(folder)
    for name, text in {"Pulumi.yaml": _PROJECT, "leaf.py": _MODULE, "__main__.py": _PROGRAM}.items():
        (folder / name).write_text(text)
    return folder
