"""What others build on, as text: verbs and options, keys of a stack file, fields of config and record.

A change shows as a diff beside this file; `python -m tests.snapshots` rewrites them, so each is deliberate.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel

from trainer.config import TrainConfig
from trainer.record import RunRecord, StepLine
from workloads.cli.main import VERBS, Verbs
from workloads.planning.spec import Experiment, Stack

FOLDER = Path(__file__).parent


def command_line() -> str:
    """Each verb with its arguments and options."""
    context = click.Context(Verbs())
    lines = []
    for verb in VERBS:
        command = Verbs().get_command(context, verb)
        assert command is not None
        words = [_parameter(parameter) for parameter in command.params]
        lines.append(" ".join([verb, *words]))
    return "\n".join(lines) + "\n"


def stack_keys() -> str:
    """Each key of a stack file and an experiment file, with type and default."""
    return _text([*_keys(Stack.model_json_schema(), "stack"), *_keys(Experiment.model_json_schema(), "experiment")])


def contract_fields() -> str:
    """Each field of the files that the trainer reads and writes."""
    models: tuple[type[BaseModel], ...] = (TrainConfig, RunRecord, StepLine)
    lines = [line for model in models for line in _keys(model.model_json_schema(), model.__name__)]
    return _text([line for line in lines if not line.startswith("RunRecord.config.")])


SNAPSHOTS: dict[str, Callable[[], str]] = {
    "command_line.txt": command_line,
    "stack_keys.txt": stack_keys,
    "contract_fields.txt": contract_fields,
}


def _parameter(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        value = "" if parameter.is_flag else f" {parameter.metavar or parameter.type.name.upper()}"
        return f"[{'/'.join(parameter.opts)}{value}]"
    return str(parameter.metavar or parameter.human_readable_name)


def _text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _keys(schema: dict[str, Any], path: str, root: dict[str, Any] | None = None) -> Iterator[str]:
    root = root or schema
    for name, field in schema.get("properties", {}).items():
        inner = _resolved(field, root)
        needed = " required" if name in schema.get("required", ()) else ""
        default = f" = {json.dumps(field['default'])}" if "default" in field and "properties" not in inner else ""
        yield f"{path}.{name}: {_type(field, root)}{default}{needed}"
        item = _resolved(inner.get("items", {}), root)
        yield from _keys(inner, f"{path}.{name}", root)
        yield from _keys(item, f"{path}.{name}[]", root)


def _resolved(field: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    reference = field.get("$ref") or next(
        (choice["$ref"] for choice in field.get("anyOf", ()) if "$ref" in choice), None
    )
    return root["$defs"][reference.rpartition("/")[2]] if reference else field


def _type(field: dict[str, Any], root: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_type(choice, root) for choice in field["anyOf"])
    if "$ref" in field:
        return "mapping"
    if "enum" in field or "const" in field:
        return " | ".join(json.dumps(value) for value in field.get("enum", [field.get("const")]))
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}), root)}"
    return str(field.get("type", "anything"))
