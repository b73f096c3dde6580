"""A stack file as text: the same `Pulumi.<stack>.yaml` that `pulumi up` reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from workloads.planning.spec import Fault, SpecError, Stack, parse_stack

PREFIX = "topolab:"
SECRET = "hfToken"
HIDDEN = "(not shown)"
_PROGRAM_KEYS = frozenset({"charts"})
"""Keys that only the Pulumi program reads."""
_PLAIN = (
    "stands there readable for everybody who sees the file; revoke the token, then set a new one with "
    "`pulumi config set --secret topolab:hfToken`"
)


@dataclass(frozen=True, kw_only=True)
class StackFile:
    """The stack and the region that its file names."""

    stack: Stack
    region: str | None


def parse_stack_file(text: str, where: str) -> StackFile:
    """Read a stack file's text; SpecError names every fault, `where` says which file."""
    config = _config(text, where)
    region = config.get("aws:region")
    if region is not None and not isinstance(region, str):
        raise SpecError(where, (Fault(field="aws:region", value=region, message="must be a region's name"),))
    return StackFile(stack=parse_stack(stack_values(config, where), where), region=region)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in AWS a stack stands, as far as its file says so."""

    region: str | None
    profile: str | None
    accounts: tuple[str, ...]
    """Those that the file allows; empty: any."""


def parse_place(text: str, where: str) -> Place:
    """The place alone, whatever else the file says: an old file still tells where to look."""
    config = _config(text, where)
    platform = config.get(f"{PREFIX}platform")
    allowed = platform.get("allowedAccounts") if isinstance(platform, Mapping) else None
    return Place(
        region=_word(config.get("aws:region")),
        profile=_word(config.get("aws:profile")),
        accounts=tuple(str(account) for account in allowed) if isinstance(allowed, list) else (),
    )


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def stack_values(config: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The `topolab:` values without their prefix; of a secret only that it is there.

    SpecError where the token isn't a mapping with `secure`: it would stand readable in a file that is committed.
    """
    own = {k.removeprefix(PREFIX): v for k, v in config.items() if k.startswith(PREFIX)}
    token = own.get(SECRET)
    if token is not None and not (isinstance(token, Mapping) and "secure" in token):
        raise SpecError(where, (Fault(field=SECRET, value=HIDDEN, message=_PLAIN),))
    values = {k: v for k, v in own.items() if k not in _PROGRAM_KEYS | {SECRET}}
    return values | ({} if token is None else {SECRET: True})


def _config(text: str, where: str) -> dict[str, Any]:
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        place = "" if line is None else f" near line {line + 1}"
        raise ValueError(f"{where}: not YAML{place}; mend the file") from error
    config = document.get("config") if isinstance(document, dict) else None
    if not isinstance(config, dict):
        raise ValueError(f"{where}: no `config:` mapping in it; a stack file holds topolab:topology and others")
    return config
