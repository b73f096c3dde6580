"""The only reader of stack configuration."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
from pulumi.runtime.config import CONFIG, is_config_secret

from workloads.planning.naming import Names
from workloads.planning.spec import Stack, parse_stack
from workloads.planning.stack_file import HIDDEN, PREFIX, SECRET, stack_values

REGISTRIES = "oci"
"""Value of `topolab:charts` for charts from their registries; anything else is a folder of charts."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that a stack file says. The Hugging Face token never leaves its Output."""

    names: Names
    stack: Stack
    region: str | None
    profile: str | None
    hf_token: pulumi.Output[str] | None
    charts: Path | None
    kubeconfig: pulumi.Output[str] | None
    """Of `kubernetes:kubeconfig`, for local machines; None: the ambient one."""
    context: str | None


def read_settings() -> Settings:
    """The settings of the running stack; ValueError (SpecError) names every fault of `topolab:` values."""
    own, aws, kubernetes = pulumi.Config("topolab"), pulumi.Config("aws"), pulumi.Config("kubernetes")
    names = Names(project=pulumi.get_project(), stack=pulumi.get_stack())
    where = f"Pulumi.{names.stack}.yaml"
    return Settings(
        names=names,
        stack=parse_stack(stack_values(_values(own), where), where),
        region=aws.get("region"),
        profile=aws.get("profile"),
        hf_token=own.get_secret("hfToken"),
        charts=_charts(own.get("charts") or REGISTRIES),
        kubeconfig=kubernetes.get_secret("kubeconfig"),
        context=kubernetes.get("context"),
    )


def _values(config: pulumi.Config) -> dict[str, Any]:
    """Every `topolab:` value, unknown keys too, so that a misspelt one is named. Secrets: only that they are.

    The engine has opened every secret by now, and what stands here may end up in a message.
    """
    keys = [key.removeprefix(PREFIX) for key in CONFIG.get() if key.startswith(PREFIX)]
    return {f"{PREFIX}{key}": _value(config, key) for key in keys}


def _value(config: pulumi.Config, key: str) -> Any:
    if is_config_secret(f"{PREFIX}{key}"):
        return {"secure": HIDDEN}
    if key == SECRET:
        return HIDDEN
    text = config.require(key)
    # The engine hands mappings and lists over as JSON; a plain word is itself.
    try:
        return json.loads(text) if text.startswith(("{", "[")) else text
    except json.JSONDecodeError:
        return text


def _charts(value: str) -> Path | None:
    if value == REGISTRIES:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise ValueError(f"topolab:charts = {value!r}: no such folder; write {REGISTRIES} or a folder of charts")
    return folder.resolve()
