"""From what a user calls a stack to its name, its file and its project."""

import re
from pathlib import Path

import yaml

from workloads.cli.arms import stack_name
from workloads.planning.stack_file import Place, parse_place


def place_of(stack: str) -> Place:
    """Where the stack's file says that it stands; nothing where there is no file."""
    path = file_of(stack)
    if not path.exists():
        return Place(region=None, profile=None, accounts=())
    return parse_place(path.read_text(), str(path))


def file_of(stack: str) -> Path:
    """`dev` is Pulumi.dev.yaml here."""
    return Path(stack) if _is_file(stack) else Path(f"Pulumi.{stack}.yaml")


def name_of(stack: str) -> str:
    """The stack's name; ValueError where it can't be one."""
    name = stack_name(Path(stack)) if _is_file(stack) else stack
    # Pulumi's own rule; and AWS reads `*` and `?` in a filter as wildcards.
    if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        raise ValueError(f"STACK {name!r}: a stack's name has letters, digits, '.', '_' and '-' alone")
    return name


def project_name() -> str:
    """Of Pulumi.yaml in this folder; ValueError where it names none."""
    path = Path("Pulumi.yaml")
    document = yaml.safe_load(path.read_text()) if path.exists() else None
    name = document.get("name") if isinstance(document, dict) else None
    if not isinstance(name, str):
        raise ValueError("Pulumi.yaml names no project here; give --project, or call from the program's folder")
    return name


def _is_file(stack: str) -> bool:
    return stack.endswith((".yaml", ".yml"))
