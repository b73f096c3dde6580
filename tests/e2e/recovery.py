"""What a user does after the engine was killed: unlock, say of each unfinished creation what became of it, refresh.

Pulumi knows that it asked for a resource, not whether it was made. What was made goes into the state with its
identifier, by `pulumi stack export` and `import`; what wasn't, or what AWS takes twice, is cleared and made again. A
half-installed release of helm is uninstalled. (`pulumi refresh --import-pending-creates`, meant for this, marks the
resource as importing, and the refresh of 3.259 then forgets it: backend/journal.go keeps pending creates alone.)
"""

import subprocess
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.e2e.cluster.api import ApiError
from tests.e2e.engine.events import kind_of
from tests.e2e.engine.workspace import Workspace
from tests.e2e.providers.aws.cloud import Cloud
from tests.e2e.providers.aws.kinds import same
from tests.e2e.providers.aws.table import KINDS
from tests.e2e.site import REGION
from tests.e2e.standing import Standing

Inputs = Mapping[str, Any]

NAMED_BY_AWS: Mapping[str, str] = {
    "aws:ec2/vpc:Vpc": "CreateVpc",
    "aws:ec2/subnet:Subnet": "CreateSubnet",
    "aws:ec2/internetGateway:InternetGateway": "CreateInternetGateway",
    "aws:ec2/routeTable:RouteTable": "CreateRouteTable",
    "aws:ec2/routeTableAssociation:RouteTableAssociation": "AssociateRouteTable",
    "aws:ec2/vpcEndpoint:VpcEndpoint": "CreateVpcEndpoint",
    "aws:ec2/natGateway:NatGateway": "CreateNatGateway",
    "aws:ec2/eip:Eip": "AllocateAddress",
    "aws:ec2/securityGroup:SecurityGroup": "CreateSecurityGroup",
    "aws:iam/policy:Policy": "CreatePolicy",
    "aws:s3/bucket:Bucket": "CreateBucket",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "CreateFileSystem",
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": "CreatePodIdentityAssociation",
}
"""Types whose identifier the program can't know, and the action that makes them."""

NAMED_BY_US: Mapping[str, Callable[[Inputs], str]] = {
    "aws:iam/role:Role": lambda inputs: inputs["name"],
    # Its name is made up anew by the next up; the forgotten one would hold the role for ever.
    "aws:iam/rolePolicy:RolePolicy": lambda inputs: f"{inputs['role']}:{inputs['name']}",
    "aws:iam/instanceProfile:InstanceProfile": lambda inputs: inputs["name"],
    "aws:ec2/placementGroup:PlacementGroup": lambda inputs: inputs["name"],
    "aws:ec2/route:Route": lambda inputs: _route(inputs["routeTableId"], inputs["destinationCidrBlock"]),
    "aws:eks/cluster:Cluster": lambda inputs: inputs["name"],
    "aws:eks/nodeGroup:NodeGroup": lambda inputs: f"{inputs['clusterName']}:{inputs['nodeGroupName']}",
    "aws:eks/addon:Addon": lambda inputs: f"{inputs['clusterName']}:{inputs['addonName']}",
    "aws:eks/accessEntry:AccessEntry": lambda inputs: f"{inputs['clusterName']}:{inputs['principalArn']}",
}
"""Types whose name tells the identifier, as `pulumi import` wants it. AWS refuses most of them a second time."""

IDEMPOTENT = frozenset(
    {
        "aws:cloudwatch/eventRule:EventRule",
        "aws:cloudwatch/eventTarget:EventTarget",
        "aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
        "aws:s3/bucketPolicy:BucketPolicy",
        "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
        "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
        "aws:s3/bucketVersioning:BucketVersioning",
        "aws:sqs/queue:Queue",
        "aws:sqs/queuePolicy:QueuePolicy",
    }
)
"""Types that the next up makes again: the same call with the same words changes nothing."""

_RELEASE = "kubernetes:helm.sh/v3:Release"


def recover(user: Workspace, standing: Standing, stack: str) -> list[str]:
    """Make the stack usable after a kill; what was decided for each unfinished creation."""
    user.cancel(stack)
    state = user.export(stack)
    decided: dict[str, str | None] = {}
    for one in state["deployment"].pop("pending_operations", []):
        if one["type"] == "creating":
            resource = one["resource"]
            decided[resource["urn"]] = identifier = _decision(standing, state, resource)
            if identifier is not None:
                state["deployment"]["resources"].append({**resource, "id": identifier})
    user.replace_state(stack, state)
    user.refresh(stack, "--skip-preview").must_succeed()
    return [f"{urn}: {f'taken in as {identifier}' if identifier else 'cleared'}" for urn, identifier in decided.items()]


def _decision(standing: Standing, state: Mapping[str, Any], resource: Mapping[str, Any]) -> str | None:
    """The identifier of what was made; None where nothing was, or where making it again does no harm."""
    kind, inputs = kind_of(resource["urn"]), resource["inputs"]
    if kind.startswith("kubernetes:"):
        return _object(standing, kind, inputs)
    if kind in NAMED_BY_US:
        identifier = NAMED_BY_US[kind](inputs)
        return None if KINDS[kind].live(_cloud(standing), identifier) is None else identifier
    if kind in NAMED_BY_AWS:
        known = {one.get("id") for one in state["deployment"]["resources"]}
        return next((one for one in _candidates(standing, kind, inputs) if one not in known), None)
    return None


def _candidates(standing: Standing, kind: str, inputs: Inputs) -> Iterator[str]:
    """What was made by this kind's action and looks as asked, the latest first."""
    cluster = f"{inputs['clusterName']}:" if "clusterName" in inputs else ""
    asked = [name for name in (*KINDS[kind].REQUIRED, "tags") if name in inputs]
    for done in reversed(standing.operations()):
        if (done.who, done.verb, done.outcome) == ("aws", NAMED_BY_AWS[kind], "ok"):
            live = KINDS[kind].live(_cloud(standing), f"{cluster}{done.subject}")
            # A bucket gets its tags by a second call.
            if live is not None and (kind.endswith("Bucket") or all(same(live.get(n), inputs[n]) for n in asked)):
                yield f"{cluster}{done.subject}"


def _object(standing: Standing, kind: str, inputs: Inputs) -> str | None:
    if kind == _RELEASE:
        _uninstall(standing, inputs["name"], inputs["namespace"])
        return None
    metadata = inputs["metadata"]
    try:
        standing.api.get(standing.api.path(dict(inputs)))
    except ApiError as error:
        if error.status != 404:
            raise
        return None
    return "/".join(part for part in (metadata.get("namespace"), metadata["name"]) if part)


def _uninstall(standing: Standing, name: str, namespace: str) -> None:
    site = standing.site
    subprocess.run(
        [site.tools / "helm", "uninstall", name, "--namespace", namespace, "--ignore-not-found", "--wait"],
        env={"KUBECONFIG": str(site.kubeconfig), "HOME": str(site.folder / "helm"), "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
    )


def _cloud(standing: Standing) -> Cloud:
    return Cloud(standing.site, region=REGION, profile=None)


def _route(table: str, destination: str) -> str:
    """As the real provider names it (pulumi-aws, from terraform's resource_aws_route)."""
    return f"r-{table}{zlib.crc32(destination.encode())}_{destination}"
