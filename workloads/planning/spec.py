"""The stack file's schema: one model for `pulumi.Config` and for the command line.

`parse_stack` takes the `topolab:` values of a stack file (prefix dropped) and either returns a Stack or
raises a SpecError that holds every fault of the file at once.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, AliasGenerator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from workloads.catalogue.models import MODELS, find_model
from workloads.catalogue.topologies import parse_topology

_TOKEN = re.compile(r"hf_[\w-]{8,}")
"""Hugging Face's tokens."""

DEFAULT_RESTARTS = 3
"""Of a run that saves: one for each of a few interruptions; a fault that repeats ends it soon."""

RecipeName = Literal["auto", "best", "seed-g6e", "seed-p4d"]
Vary = Literal["topology", "recipe", "best"]


class Spec(BaseModel):
    """Frozen, strict, camelCase; an unknown key is an error."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        alias_generator=AliasGenerator(validation_alias=to_camel, serialization_alias=to_camel),
    )


S = TypeVar("S", bound=Spec)


def _zone(value: str) -> str:
    if not re.fullmatch(r"[a-z]{2}(-[a-z]+)+-\d[a-z]", value):
        raise ValueError("not an availability zone; write one such as us-east-1b")
    return value


def _cidr(value: str) -> str:
    network = IPv4Network(value)
    if not 16 <= network.prefixlen <= 17:
        raise ValueError("must be a /16 or /17: EKS spans two zones, and an EFA node takes many addresses of its /20")
    return value


_PRIVATE = tuple(IPv4Network(block) for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))


def _api_access(value: str) -> str:
    try:
        network = IPv4Network(value)
    except ValueError as error:
        raise ValueError(f"not an IPv4 block: {error}; write one such as 203.0.113.7/32") from None
    if any(network.subnet_of(block) for block in _PRIVATE):
        raise ValueError("the public endpoint sees no private address; write the one that you leave your network by")
    return str(network)


def _principal(value: str) -> str:
    if ":assumed-role/" in value:
        raise ValueError("an assumed role is a session; write its role, such as arn:aws:iam::123456789012:role/Lab")
    if not re.fullmatch(r"arn:aws:iam::\d{12}:(role|user)/[\w+=,.@/-]+", value):
        raise ValueError("not the ARN of a role or user; write one such as arn:aws:iam::123456789012:role/Lab")
    return value


def _boundary(value: str) -> str:
    if not re.fullmatch(r"arn:aws:iam::(\d{12}|aws):policy/[\w+=,.@/-]+", value):
        raise ValueError("not the ARN of a policy; write one such as arn:aws:iam::123456789012:policy/Boundary")
    return value


def _account(value: str) -> str:
    if not re.fullmatch(r"\d{12}", value):
        raise ValueError("not an AWS account id; write twelve digits in quotes")
    return value


def _records(value: str) -> str:
    if value != "managed" and not re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/\S*)?|file:///\S+", value):
        raise ValueError("must be `managed`, s3://bucket/prefix or file:///folder (local machines)")
    return value.rstrip("/")


def _source(value: str) -> str:
    if not re.fullmatch(r"embedded|hf:[\w.-]+(/[\w.-]+)?(@[\w.-]+)?|s3://\S+|file:/\S+", value):
        raise ValueError("must be `embedded`, hf:<id>, s3://... or file:/...")
    return value


def _reservation(value: str) -> str:
    if not re.fullmatch(r"cr-[0-9a-f]{17}", value):
        raise ValueError("not the id of a capacity reservation or block; write cr- and 17 hexadecimal digits")
    return value


def _moment(value: str) -> str:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError('not a time with its zone; write it as EC2 does, "2026-12-01T11:30:00Z"')
    return value


CapacityMode = Literal["onDemand", "spot", "reservation", "capacityBlock"]


class Capacity(Spec):
    """How GPU nodes are bought. `id`: of a reservation or block; `ends_at`: of a block, as EC2 says it."""

    mode: CapacityMode = "onDemand"
    id: Annotated[str, AfterValidator(_reservation)] | None = None
    ends_at: Annotated[str, AfterValidator(_moment)] | None = None


class Storage(Spec):
    """Checkpoint storage; `keep` retains it at destroy."""

    fsx: Literal["none", "scratch", "persistent"] = "none"
    keep: bool = False


class ImageBase(Spec):
    """Another base image: the trainer is mounted and locked wheels are added, as with `stock`."""

    base: str = Field(min_length=1)


def _own_image(value: str | ImageBase) -> str | ImageBase:
    if isinstance(value, str) and value != "stock" and not re.search(r"@sha256:[0-9a-f]{64}$", value):
        raise ValueError("must be `stock`, {base: REFERENCE}, or a reference by digest (name@sha256:...)")
    return value


class Platform(Spec):
    """Where it runs. Everything has a default but the zone, which local machines don't need."""

    zone: Annotated[str, AfterValidator(_zone)] | None = None
    vpc_cidr: Annotated[str, AfterValidator(_cidr)] = "10.0.0.0/16"
    api_access_cidrs: tuple[Annotated[str, AfterValidator(_api_access)], ...] = ()
    """Who may reach the API server's public endpoint; empty: everybody with credentials, as EKS does."""
    api_endpoint: Literal["public", "private"] = "public"
    """`private`: the API server answers inside the VPC alone, so `pulumi up` must run from there."""
    admins: tuple[Annotated[str, AfterValidator(_principal)], ...] = ()
    """Roles and users who are admins of the cluster beside the identity that made it."""
    permissions_boundary: Annotated[str, AfterValidator(_boundary)] | None = None
    """Of every role that the stack makes, where an organisation asks for one."""
    capacity: Capacity = Capacity()
    storage: Storage = Storage()
    records: Annotated[str, AfterValidator(_records)] = "managed"
    image: Annotated[str | ImageBase, AfterValidator(_own_image)] = "stock"
    allowed_accounts: tuple[Annotated[str, AfterValidator(_account)], ...] = ()
    budget_usd: float | None = Field(default=None, gt=0)
    ttl_minutes: int = Field(default=240, ge=10, le=10080)
    shared_with: str | None = None


class Data(Spec):
    """What is read and how it is fed; no feed: `lines` with a seed recipe, else `packed`."""

    source: Annotated[str, AfterValidator(_source)] = "embedded"
    feed: Literal["lines", "packed"] | None = None


class Run(Spec):
    """What to train and for how long."""

    model: str = "llama-3.2-1b"
    data: Data = Data()
    recipe: RecipeName = "auto"
    global_batch_tokens: int | None = Field(default=None, gt=0)
    sequence_length: int | None = Field(default=None, gt=0)
    steps: int = Field(default=30, ge=0)
    warmup_steps: int = Field(default=5, ge=1)
    checkpoint_every_steps: int | None = Field(default=None, gt=0)
    restarts: int | None = Field(default=None, ge=0, le=20)
    """How often a failed or interrupted job starts over from its newest checkpoint; left out: 3 where checkpoints are
    asked for, else 0."""
    seed: int = Field(default=7, ge=0)
    attempt: int = Field(default=1, ge=1)
    on_wrong_link: Literal["stop", "record"] = "stop"
    on_nan_loss: Literal["stop", "skip"] = "stop"
    compared_with: tuple[str, ...] = ()
    """Topologies of other stacks that this one will be compared with: `auto` then takes a recipe that serves all."""

    @property
    def restarts_allowed(self) -> int:
        """`restarts`, or what follows from the checkpoints where it is left out."""
        if self.restarts is not None:
            return self.restarts
        return 0 if self.checkpoint_every_steps is None else DEFAULT_RESTARTS


class Stack(Spec):
    """A stack file: its topology, where it runs, what it runs, and whether a Hugging Face token is there."""

    topology: str
    platform: Platform = Platform()
    run: Run = Run()
    hf_token: bool = False


class Arm(Spec):
    """One arm of an experiment: the base with a patch."""

    name: str = Field(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
    patch: dict[str, Any] = {}


class Experiment(Spec):
    """An experiment file. `base` has a stack's keys: topology, run and platform."""

    name: str = Field(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
    vary: Vary
    base: dict[str, Any]
    arms: tuple[Arm, ...] = Field(min_length=1)
    repeats: int = Field(default=1, ge=1, le=100)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing that is wrong: the field, the value, and a sentence that ends with what to do."""

    field: str
    value: object
    message: str

    def __str__(self) -> str:
        # A token may stand under any misspelt key, and a message ends up in logs.
        return _TOKEN.sub("hf_...", f"{self.field} = {json.dumps(self.value, default=str)}: {self.message}")


class SpecError(ValueError):
    """Every fault of one file or plan at once."""

    def __init__(self, where: str, faults: tuple[Fault, ...]) -> None:
        lines = [str(f) for f in faults]
        head = f"{where}: {lines[0]}" if len(lines) == 1 else f"{where}: {len(lines)} faults"
        super().__init__("\n  ".join([head, *(lines if len(lines) > 1 else [])]))
        self.where = where
        self.faults = faults


def parse_stack(values: Mapping[str, Any], where: str) -> Stack:
    """The stack of these `topolab:` values; SpecError names every fault, `where` says which file.

    A file that breaks the schema is never planned, so its names are looked up here: all faults in one report.
    """
    try:
        return _parse(Stack, values, where)
    except SpecError as error:
        raise SpecError(where, (*error.faults, *_name_faults(values))) from error


def _name_faults(values: Mapping[str, Any]) -> Iterator[Fault]:
    """Names that the catalogue doesn't know, of values that may have any shape."""
    topology, run = values.get("topology"), values.get("run")
    if isinstance(topology, str):
        try:
            parse_topology(topology)
        except ValueError as error:
            yield Fault(field="topology", value=topology, message=str(error).removeprefix(f"{topology!r}: "))
    model = run.get("model") if isinstance(run, Mapping) else None
    if isinstance(model, str) and find_model(model) is None:
        yield unknown_model(model)


def unknown_model(name: str) -> Fault:
    """The fault of a model that the catalogue doesn't have."""
    return Fault(field="run.model", value=name, message=f"unknown; known: {', '.join(m.name for m in MODELS)}")


def parse_experiment(values: Mapping[str, Any], where: str) -> tuple[Experiment, tuple[tuple[str, Stack], ...]]:
    """The experiment and, per arm, its name and its patched stack."""
    experiment = _parse(Experiment, values, where)
    names = [a.name for a in experiment.arms]
    repeated = sorted({n for n in names if names.count(n) > 1})
    if repeated:
        raise SpecError(
            where, (Fault(field="arms", value=repeated, message="two arms of one name; give each its own"),)
        )
    faults = tuple(fault for arm in experiment.arms for fault in _patch_faults(experiment.vary, arm))
    if faults:
        raise SpecError(where, faults)
    stacks = tuple(
        (arm.name, parse_stack(merged(experiment.base, arm.patch), f"{where}, arm {arm.name}"))
        for arm in experiment.arms
    )
    return experiment, stacks


def _patch_faults(vary: Vary, arm: Arm) -> Iterator[Fault]:
    """An arm may change only what its experiment varies; else the comparison would have no one cause."""
    allowed = {"recipe": "run.recipe"}.get(vary, "topology")
    for field, value in _leaves(arm.patch):
        if field != allowed:
            yield Fault(
                field=f"arms.{arm.name}.patch.{field}",
                value=value,
                message=f"under vary: {vary} an arm may change {allowed} only; move it to base",
            )


def _leaves(patch: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in patch.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def merged(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Base with the patch's values laid over it; mappings merge, everything else replaces."""
    result = dict(base)
    for key, value in patch.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result


def _parse(schema: type[S], values: Mapping[str, Any], where: str) -> S:
    try:
        # Strict mode tells a list from a tuple and a string from a number only when it reads JSON.
        return schema.model_validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        raise SpecError(where, tuple(_faults(error, schema))) from error


def _faults(error: ValidationError, schema: type[Spec]) -> Iterator[Fault]:
    for e in error.errors():
        path = [str(part) for part in e["loc"] if str(part) not in {"str", "ImageBase", "function-after[_own_image()"}]
        yield Fault(
            field=".".join(path) or "file",
            value=e["input"],
            message=_sentence(e["type"], e["msg"], path, schema),
        )


def _sentence(kind: str, message: str, path: list[str], schema: type[Spec]) -> str:
    if kind == "missing":
        return "is missing; add it"
    if kind != "extra_forbidden":
        return message.removeprefix("Value error, ")
    near = difflib.get_close_matches(path[-1], sorted(_keys(schema)), n=1, cutoff=0.6)
    return "unknown key; " + (f"did you mean {near[0]}?" if near else "remove it")


def _keys(schema: type[BaseModel]) -> set[str]:
    keys: set[str] = set()
    for name, field in schema.model_fields.items():
        keys.add(to_camel(name))
        nested = field.annotation
        if isinstance(nested, type) and issubclass(nested, BaseModel):
            keys |= _keys(nested)
    return keys
