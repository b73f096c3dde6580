"""What AWS would be asked: the create call of each registered resource, as the provider makes it.

The rows of the stand-in provider (`tests/e2e/providers/aws`) make the calls; a recorder answers them. Identifiers of
the in-memory engine are put into AWS's own form before.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import botocore.session
from botocore.model import ListShape, ServiceModel, Shape, StructureShape

from tests.e2e.providers.aws.kinds import checked
from tests.e2e.providers.aws.table import KINDS
from tests.e2e.providers.serving import Resource
from tests.pulumi_engine import ACCOUNT, Graph, Registered

REGION = "us-east-1"
CLUSTER = "aws:eks/cluster:Cluster"

_IDS = {
    "allocationId": ("Eip", "eipalloc"),
    "gatewayId": ("InternetGateway", "igw"),
    "natGatewayId": ("NatGateway", "nat"),
    "routeTableId": ("RouteTable", "rtb"),
    "routeTableIds": ("RouteTable", "rtb"),
    "securityGroupIds": ("SecurityGroup", "sg"),
    "subnetId": ("Subnet", "subnet"),
    "subnetIds": ("Subnet", "subnet"),
    "vpcId": ("Vpc", "vpc"),
}
"""Inputs that hold an id which AWS numbers: of which kind, and how AWS begins it."""
_ARNS = {
    "Role": ("iam", "", "role/{name}"),
    "Policy": ("iam", "", "policy/{name}"),
    "Queue": ("sqs", REGION, "{name}"),
    "Bucket": ("s3", None, "{id}"),
}


@dataclass(frozen=True, kw_only=True)
class Made:
    """A resource with inputs as the provider gets them: of AWS's own types, ids in AWS's form."""

    urn: str
    type: str
    name: str
    inputs: dict[str, Any]

    @property
    def kind(self) -> str:
        """Last part of the type."""
        return self.type.rpartition(":")[2]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One call."""

    urn: str
    service: str
    operation: str
    params: dict[str, Any]


def made_in_aws(graph: Graph) -> list[Made]:
    """Every resource of AWS in the graph, the cluster inside pulumi-eks's component too."""
    replace = _as_aws_says(graph)
    default = json.loads(graph.one("pulumi:providers:aws").inputs["defaultTags"])["tags"]
    return [
        Made(urn=r.urn, type=_type(r), name=r.name, inputs=_tagged(_type(r), replace(_inputs(r)), default))
        for r in graph.resources
        if r.type.startswith("aws:") or r.type == "eks:index:Cluster"
    ]


def calls(made: Made) -> list[Asked]:
    """The changing calls that the provider makes for it."""
    recorder = Recorder(made.urn)
    resource = Resource(urn=made.urn, type=made.type, name=made.name)
    kind = KINDS[made.type]
    wanted = checked(kind, resource, {}, made.inputs, made.urn.encode())
    assert not wanted.failures, wanted.failures
    kind.make(recorder, dict(wanted.inputs))  # type: ignore[arg-type]  # the recorder stands for the account
    return recorder.asked


class Recorder:
    """Stands for the account: keeps each call and answers in the shape of its service's model."""

    account = ACCOUNT
    region = REGION

    def __init__(self, urn: str) -> None:
        self.asked: list[Asked] = []
        self._urn = urn

    def arn(self, service: str, rest: str, *, regional: bool = True) -> str:
        """As the provider's own."""
        return f"arn:aws:{service}:{REGION if regional else ''}:{ACCOUNT}:{rest}"

    def __getattr__(self, service: str) -> "_Client":
        return _Client(self, service)

    def called(self, service: str, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        """Keep it; an answer with a word in every place."""
        self.asked.append(Asked(urn=self._urn, service=service, operation=operation, params=params))
        output = model_of(service).operation_model(operation).output_shape
        return {} if output is None else dict(_answer(output, 0))


class _Client:
    def __init__(self, recorder: Recorder, service: str) -> None:
        self._recorder, self._service = recorder, service

    def __getattr__(self, method: str) -> Callable[..., dict[str, Any]]:
        operation = _operations(self._service)[method]
        return lambda **params: self._recorder.called(self._service, operation, params)


@cache
def model_of(service: str) -> ServiceModel:
    """botocore's model of the service."""
    return botocore.session.get_session().get_service_model(service)


@cache
def _operations(service: str) -> dict[str, str]:
    return {botocore.xform_name(name): name for name in model_of(service).operation_names}


def _answer(shape: Shape, depth: int) -> Any:
    if isinstance(shape, StructureShape):
        # Nothing failed, and depth ends where a shape holds itself.
        told = {name: member for name, member in shape.members.items() if not name.startswith("Failed")}
        return {name: _answer(member, depth + 1) for name, member in told.items()} if depth < 4 else {}
    if isinstance(shape, ListShape):
        return [_answer(shape.member, depth + 1)]
    return {"integer": 1, "long": 1, "boolean": True, "map": {}}.get(shape.type_name, "made")


def _type(registered: Registered) -> str:
    return registered.type if registered.type.startswith("aws:") else CLUSTER


def _tagged(kind: str, inputs: dict[str, Any], default: Mapping[str, str]) -> dict[str, Any]:
    """With the provider's own tags, which reach every type that can be tagged."""
    return {**inputs, "tags": {**default, **(inputs.get("tags") or {})}} if KINDS[kind].tagged else inputs


def _inputs(registered: Registered) -> dict[str, Any]:
    given = registered.inputs
    if registered.type != "eks:index:Cluster":
        return given
    # As pulumi-eks 4.4.0 asks for its cluster; the stand-in component does the same.
    optional = {"enabledClusterLogTypes": given.get("enabledClusterLogTypes")}
    config = {
        "subnetIds": [*given["publicSubnetIds"], *given["privateSubnetIds"]],
        "endpointPrivateAccess": given["endpointPrivateAccess"],
        "endpointPublicAccess": given["endpointPublicAccess"],
        "publicAccessCidrs": given.get("publicAccessCidrs"),
    }
    return {
        "name": given["name"],
        "roleArn": f"arn:aws:iam::{ACCOUNT}:role/{given['name']}-control-plane",
        "version": given["version"],
        "vpcConfig": {name: value for name, value in config.items() if value is not None},
        "accessConfig": {
            "authenticationMode": given["authenticationMode"],
            "bootstrapClusterCreatorAdminPermissions": True,
        },
        **{name: value for name, value in optional.items() if value is not None},
    }


def _as_aws_says(graph: Graph) -> Callable[[dict[str, Any]], dict[str, Any]]:
    arns, numbers = dict(_arns(graph)), {one.urn: number for number, one in enumerate(graph.resources)}

    def identifier(key: str, value: str) -> str:
        kind, prefix = _IDS[key]
        own = [numbers[one.urn] for one in graph.of(kind) if value in {f"{one.name}-0a1b2c", f"eipalloc-{one.name}"}]
        # What none of ours is, EKS made: the cluster's own group.
        return f"{prefix}-{own[0] if own else 4095:017x}"

    def replaced(value: Any, key: str) -> Any:
        if isinstance(value, Mapping):
            return {name: replaced(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [replaced(item, key) for item in value]
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if not isinstance(value, str):
            return value
        return identifier(key, value) if key in _IDS else _with_arns(value, arns)

    return lambda inputs: {name: replaced(item, name) for name, item in inputs.items()}


def _arns(graph: Graph) -> Iterator[tuple[str, str]]:
    """The engine's ARNs, and AWS's."""
    for one in graph.resources:
        if one.kind in _ARNS:
            service, region, form = _ARNS[one.kind]
            place = "::" if region is None else f":{region}:{ACCOUNT}"
            name = form.format(name=one.inputs.get("name"), id=f"{one.inputs.get('bucketPrefix')}0a1b2c")
            yield f"arn:aws:{service}:{REGION}:{ACCOUNT}:{one.name}", f"arn:aws:{service}{place}:{name}"


def _with_arns(text: str, arns: Mapping[str, str]) -> str:
    for arn in sorted(arns, key=len, reverse=True):
        text = text.replace(arn, arns[arn])
    return text
