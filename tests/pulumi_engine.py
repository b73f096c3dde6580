"""An engine in memory: runs the program as `pulumi up` would and keeps what it registered.

Unlike Pulumi's own mocks it sees parents, dependencies, providers, timeouts and what is kept at destroy; a
preview's outputs are unknown; and one name twice is an error, as in the real engine.
"""

import contextvars
import functools
import gc
import json
import runpy
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws
import yaml
from google.protobuf import json_format, struct_pb2
from pulumi.runtime import mocks, settings
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.stack import Stack

with warnings.catch_warnings():
    # The SDK warns of its own old classes when its modules are really loaded, which a first use does.
    warnings.simplefilter("ignore", DeprecationWarning)
    import pulumi_eks

    _LOADED = (pulumi_aws.s3.Bucket, pulumi_aws.ec2.Vpc, pulumi_eks.Cluster)

ROOT = Path(__file__).parents[1]
ACCOUNT = "123456789012"
TOKEN = "hf_a-token-that-must-never-be-seen"
SPOT_ROLE = "AWSServiceRoleForEC2Spot"
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d", "us-east-1f")
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"

_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"
_RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
_EKS_CHILD = "aws:eks/cluster:Cluster"


@dataclass(frozen=True, kw_only=True)
class Registered:
    """One resource as the program asked for it. `raw` still marks secrets; `inputs` doesn't."""

    urn: str
    type: str
    name: str
    parent: str
    raw: dict[str, Any]
    dependencies: frozenset[str]
    provider: str
    providers: dict[str, str]
    """Of a remote component, whose children use them."""
    custom: bool
    delete_timeout: str
    retained: bool
    protected: bool
    replace_on_changes: tuple[str, ...]
    delete_before_replace: bool
    replacement_trigger: str | None

    @property
    def kind(self) -> str:
        """Last part of the type; empty for a component of ours."""
        return "" if self.type.startswith("topolab:") else self.type.split(":")[-1]

    @functools.cached_property
    def inputs(self) -> dict[str, Any]:
        """Inputs with secrets unwrapped."""
        opened = _opened(self.raw)
        assert isinstance(opened, dict)
        return opened


@dataclass(kw_only=True)
class Graph:
    """Everything that one run registered, in order, and the stack's outputs."""

    name: str

    resources: list[Registered] = field(default_factory=list)
    finished: set[str] = field(default_factory=set)
    """URNs of components that registered their outputs."""
    invokes: list[str] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)
    secret_outputs: set[str] = field(default_factory=set)
    stack_urn: str = ""

    def of(self, kind: str, name: str | None = None) -> list[Registered]:
        """Resources of a type token, or of its last part (`Subnet`, `NodePool`); components by token alone."""
        return [r for r in self.resources if kind in (r.type, r.kind) and name in (None, r.name)]

    def one(self, kind: str, name: str | None = None) -> Registered:
        """The only such resource."""
        found = self.of(kind, name)
        assert len(found) == 1, f"{len(found)} of {kind} {name or ''}: {[r.urn for r in found]}"
        return found[0]

    def outlives(self, kept: Registered, gone: Registered) -> bool:
        """True where `pulumi destroy` deletes `gone` before `kept`: `gone` depends on it, however far."""
        if gone.urn not in self._needs:
            self._needs[gone.urn] = self._needed(gone.urn)
        return kept.urn in self._needs[gone.urn]

    @functools.cached_property
    def _needs(self) -> dict[str, set[str]]:
        return {}

    @functools.cached_property
    def _edges(self) -> dict[str, frozenset[str]]:
        return {r.urn: r.dependencies | {r.parent} | _provider_urn(r) for r in self.resources}

    def _needed(self, urn: str) -> set[str]:
        seen: set[str] = set()
        queue = [urn]
        while queue:
            for needed in self._edges.get(queue.pop(), frozenset()) - seen:
                seen.add(needed)
                queue.append(needed)
        return seen


@dataclass(frozen=True, kw_only=True)
class StackFile:
    """A stack file's configuration as the engine hands it over."""

    stack: str
    config: Mapping[str, Any]

    def with_values(self, **values: Any) -> "StackFile":
        """A copy with `topolab:` values merged in, one level deep."""
        config = dict(self.config)
        for key, value in values.items():
            old = config.get(f"topolab:{key}")
            merged = {**old, **value} if isinstance(old, Mapping) and isinstance(value, Mapping) else value
            config[f"topolab:{key}"] = merged
        return StackFile(stack=self.stack, config=config)


def stack_names() -> list[str]:
    """Every stack file of the repository."""
    return sorted(path.name.split(".")[1] for path in ROOT.glob("Pulumi.*.yaml"))


def read_stack(name: str) -> StackFile:
    """The stack file of that name."""
    document = yaml.safe_load((ROOT / f"Pulumi.{name}.yaml").read_text(encoding="utf-8"))
    return StackFile(stack=name, config=document["config"])


def _dev(name: str, **values: Any) -> StackFile:
    return StackFile(stack=name, config=read_stack("dev").with_values(**values).config)


VARIANTS: dict[str, Callable[[], StackFile]] = {
    "scratch": lambda: _dev("scratch", platform={"storage": {"fsx": "scratch"}}),
    "kept": lambda: _dev("kept", platform={"storage": {"fsx": "persistent", "keep": True}}),
    "own-bucket": lambda: _dev("own-bucket", platform={"records": "s3://a-bucket/of/mine"}),
    "gated": lambda: _dev("gated", run={"data": {"source": "hf:someone/gated"}}, hfToken={"secure": "v1:x"}),
    "An_odd.Name-of_many.letters-that-no.AWS_name.can-hold-whole": lambda: _dev(
        "An_odd.Name-of_many.letters-that-no.AWS_name.can-hold-whole"
    ),
    "guarded": lambda: _dev(
        "guarded",
        platform={
            "admins": [f"arn:aws:iam::{ACCOUNT}:role/Lab"],
            "permissionsBoundary": f"arn:aws:iam::{ACCOUNT}:policy/Boundary",
            "apiEndpoint": "private",
            "capacity": {"mode": "spot"},
        },
    ),
    "local": lambda: StackFile(
        stack="local",
        config={
            "topolab:topology": "cpu-2x1-tcp",
            "topolab:run": {"model": "tiny", "globalBatchTokens": 4096, "sequenceLength": 256},
        },
    ),
}
"""Stacks that no file of the repository shows: options, a name that AWS can't take, a local machine."""


# Pulumi's SDKs make millions of objects that live as long as the tests: the collector needn't walk them.
gc.freeze()


@functools.cache
def registered(name: str, *, preview: bool = False) -> Graph:
    """What `pulumi up` (or preview) of that stack or variant registers; one run a test session."""
    stack = VARIANTS[name]() if name in VARIANTS else read_stack(name)
    return run(stack, preview=preview)


def run(
    stack: StackFile, *, preview: bool = False, account: str = ACCOUNT, linked_roles: tuple[str, ...] = (SPOT_ROLE,)
) -> Graph:
    """Runs the program; whatever it raises comes out. `linked_roles`: those of the account for spot."""
    return contextvars.copy_context().run(_run, stack, preview, _Answers(account, linked_roles))


def leaves(value: Any) -> Iterator[Any]:
    """Every scalar inside."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def in_the_clear(value: Any) -> Iterator[Any]:
    """Every scalar that is not inside a secret."""
    if isinstance(value, Mapping) and value.get(_SIGNATURE) == _SECRET:
        return
    if isinstance(value, Mapping):
        for item in value.values():
            yield from in_the_clear(item)
    elif isinstance(value, list):
        for item in value:
            yield from in_the_clear(item)
    else:
        yield value


def _run(stack: StackFile, preview: bool, answers: "_Answers") -> Graph:
    graph = Graph(name=stack.stack)
    monitor = _Monitor(graph, answers, preview=preview)
    settings.set_root_resource(None)  # type: ignore[arg-type]  # a new context still holds its creator's stack
    mocks.set_mocks(monitor.mocks, project="topolab", stack=stack.stack, preview=preview, monitor=monitor)
    secrets = [key for key, value in stack.config.items() if _is_secret(value)]
    pulumi.runtime.set_all_config({k: _as_engine_text(v) for k, v in stack.config.items()}, secrets)
    pulumi.runtime.test(_program)(graph)
    return graph


async def _program(graph: Graph) -> None:
    runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")
    root = settings.get_root_resource()
    assert isinstance(root, Stack)
    for name, value in root.outputs.items():
        output = pulumi.Output.from_input(value)
        graph.outputs[name] = await output.future()
        if await output.is_secret():
            graph.secret_outputs.add(name)


def _is_secret(value: Any) -> bool:
    return isinstance(value, Mapping) and "secure" in value


def _as_engine_text(value: Any) -> str:
    if _is_secret(value):
        return TOKEN
    return value if isinstance(value, str) else json.dumps(value)


class _Answers(mocks.Mocks):
    """What AWS answers to questions."""

    def __init__(self, account: str, linked_roles: tuple[str, ...]) -> None:
        self.account, self.linked_roles = account, linked_roles

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]] | None]:
        if args.token == "aws:index/getCallerIdentity:getCallerIdentity":
            arn = f"arn:aws:sts::{self.account}:assumed-role/someone/session"
            return {"accountId": self.account, "arn": arn, "id": self.account, "userId": "AID"}, []
        if args.token == "aws:index/getAvailabilityZones:getAvailabilityZones":
            assert "use1-az3" in args.args["excludeZoneIds"], "a zone without EKS may be picked"
            return {"names": list(ZONES), "zoneIds": [], "groupNames": [], "id": "us-east-1"}, []
        if args.token == "aws:iam/getRoles:getRoles":
            assert args.args["pathPrefix"] == "/aws-service-role/spot.amazonaws.com/"
            return {"names": list(self.linked_roles), "arns": [], "id": "us-east-1"}, []
        raise AssertionError(f"the program asks AWS {args.token}, which this engine has no answer to")

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:  # noqa: ARG002
        raise AssertionError("the monitor answers registrations itself")


class _Monitor(mocks.MockMonitor):
    """Keeps each registration; answers with inputs and, but in a preview, with computed outputs.

    Its methods are named by Pulumi's protocol.
    """

    def __init__(self, graph: Graph, answers: _Answers, *, preview: bool) -> None:
        super().__init__(answers)
        self.graph, self.preview, self._lock = graph, preview, threading.Lock()

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """As the real engine: the type carries every parent's type, so names clash only under one parent."""
        stack, project = settings.get_stack(), settings.get_project()
        above = parent.split("::")[2] if parent else ""
        path = f"{above}${type_}" if above and above != "pulumi:pulumi:Stack" else type_
        return f"urn:pulumi:{stack}::{project}::{path}::{name}"

    def Invoke(self, request: Any) -> Any:  # noqa: N802
        self.graph.invokes.append(request.tok)
        return super().Invoke(request)

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == "pulumi:pulumi:Stack":
            self.graph.stack_urn = urn
            return resource_pb2.RegisterResourceResponse(urn=urn)
        one = _registered(urn, request)
        self._keep(one)
        computed = self._computed(one)
        identifier = "" if self.preview or not one.custom else _identifier(one)
        state = struct_pb2.Struct()
        json_format.ParseDict({**one.raw, **computed}, state)
        return resource_pb2.RegisterResourceResponse(urn=urn, id=identifier, object=state)

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802
        self.graph.finished.add(request.urn)
        return super().RegisterResourceOutputs(request)

    def _keep(self, one: Registered) -> None:
        with self._lock:
            twice = [r.urn for r in self.graph.resources if r.urn == one.urn]
            assert not twice, f"registered twice: {one.urn}"
            self.graph.resources.append(one)
            self.resources[one.urn] = mocks.MockMonitor.ResourceRegistration(one.urn, _identifier(one), one.inputs)

    def _computed(self, one: Registered) -> dict[str, Any]:
        if one.type == "eks:index:Cluster":
            return self._eks_outputs(one)
        if self.preview:
            return {}
        arn = f"arn:aws:{one.type.split(':')[1].split('/')[0]}:us-east-1:{ACCOUNT}:{one.name}"
        known = {"arn": arn, "allocationId": f"eipalloc-{one.name}", "dnsName": f"{one.name}.fsx", "mountName": "fsx",
                 "latestVersion": 1}  # fmt: skip
        # Physical names that AWS's provider makes up where the program leaves them out.
        return {**known, "name": one.inputs.get("name", f"{one.name}-7f3a")}

    def _eks_outputs(self, one: Registered) -> dict[str, Any]:
        """The component's own children are few here: the cluster that its outputs refer to."""
        urn, name = self.make_urn(one.urn, _EKS_CHILD, one.name), one.inputs["name"]
        identifier = UNKNOWN if self.preview else name
        self.resources[urn] = mocks.MockMonitor.ResourceRegistration(urn, identifier, {"name": identifier})
        child = {"eksCluster": {_SIGNATURE: _RESOURCE, "urn": urn, "id": identifier}}
        if self.preview:
            return child
        kubeconfig = json.dumps({"apiVersion": "v1", "kind": "Config", "clusters": [{"name": name}]})
        return {**child, "kubeconfigJson": kubeconfig, "clusterSecurityGroupId": f"sg-{name}"}


def _identifier(one: Registered) -> str:
    return str(one.inputs.get("bucketPrefix") or one.name) + "-0a1b2c"


def _registered(urn: str, request: Any) -> Registered:
    trigger = request.replacement_trigger
    return Registered(
        urn=urn,
        type=request.type,
        name=request.name,
        parent=request.parent,
        raw=json_format.MessageToDict(request.object),
        dependencies=frozenset(request.dependencies),
        provider=request.provider,
        providers=dict(request.providers),
        custom=request.custom,
        delete_timeout=request.customTimeouts.delete,
        retained=request.retainOnDelete,
        protected=request.protect,
        replace_on_changes=tuple(request.replaceOnChanges),
        delete_before_replace=request.deleteBeforeReplace,
        replacement_trigger=trigger.string_value if request.HasField("replacement_trigger") else None,
    )


def _provider_urn(one: Registered) -> frozenset[str]:
    return frozenset(reference.rsplit("::", 1)[0] for reference in (one.provider, *one.providers.values()) if reference)


def _opened(value: Any) -> Any:
    if isinstance(value, Mapping) and value.get(_SIGNATURE) == _SECRET:
        return _opened(value["value"])
    if isinstance(value, Mapping):
        return {key: _opened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_opened(item) for item in value]
    return value
