"""What a user does after the engine was killed: unlock, say of each unfinished creation what became of it, refresh.

Pulumi knows that it asked for a resource, not whether it was made. Nothing is looked up here that a user has not: the
state (`pulumi stack export`), the account's own listing (`topo verify-destroyed`), and AWS's answers about one thing.
What was made goes into the state with its identifier, by `pulumi stack export` and `import`; a user may as well remove
it by the listing's command. What wasn't, or what AWS takes twice, is cleared and made again. Objects in the cluster are
taken over by the next up (TAKES_OVER), a half-installed release of helm is uninstalled. (`pulumi refresh
--import-pending-creates`, meant for this, marks the resource as importing, and the refresh of 3.259 then forgets it:
backend/journal.go keeps pending creates alone.)
"""

import subprocess
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.e2e.engine.events import kind_of
from tests.e2e.engine.workspace import Workspace
from tests.e2e.listing import Listing, look
from tests.e2e.providers.aws.cloud import Cloud
from tests.e2e.providers.aws.kinds import same
from tests.e2e.providers.aws.table import KINDS
from tests.e2e.site import ACCOUNT, REGION
from tests.e2e.standing import Standing

Inputs = Mapping[str, Any]
Resource = Mapping[str, Any]
"""As the state holds it."""

TAKES_OVER: Mapping[str, str] = {"PULUMI_K8S_UPSERT_EXISTING_OBJECTS": "true"}
"""With it an up takes objects over that are in the cluster already: those that the killed one made."""

LISTED: Mapping[str, str] = {
    "aws:ec2/vpc:Vpc": "VPC",
    "aws:ec2/subnet:Subnet": "subnet",
    "aws:ec2/internetGateway:InternetGateway": "internet gateway",
    "aws:ec2/routeTable:RouteTable": "route table",
    "aws:ec2/vpcEndpoint:VpcEndpoint": "VPC endpoint",
    "aws:ec2/natGateway:NatGateway": "NAT gateway",
    "aws:ec2/eip:Eip": "elastic IP",
    "aws:ec2/launchTemplate:LaunchTemplate": "launch template",
    "aws:ec2/securityGroup:SecurityGroup": "security group",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "file system",
}
"""Types whose identifier AWS makes up, and what `topo verify-destroyed` calls them."""

ASKED_FOR: Mapping[str, Callable[[Cloud, Inputs], list[str]]] = {
    # It gets its tags by a second call, so the listing may not know it yet; `aws s3 ls` does.
    "aws:s3/bucket:Bucket": lambda cloud, inputs: _buckets(cloud, inputs["bucketPrefix"]),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": lambda cloud, inputs: _associations(
        cloud, table=inputs["routeTableId"], subnet=inputs["subnetId"]
    ),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": lambda cloud, inputs: _identities(
        cloud, cluster=inputs["clusterName"], namespace=inputs["namespace"], account=inputs["serviceAccount"]
    ),
}
"""Types whose identifier AWS makes up and that bear no tag of the stack: the question that finds them."""

NAMED_BY_US: Mapping[str, Callable[[Inputs], str]] = {
    "aws:iam/policy:Policy": lambda inputs: f"arn:aws:iam::{ACCOUNT}:policy/{inputs['name']}",
    "aws:cloudwatch/logGroup:LogGroup": lambda inputs: inputs["name"],
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
    """Make the stack usable after a kill; what was decided for each unfinished creation.

    The next up must have TAKES_OVER in its environment.
    """
    user.cancel(stack)
    state = user.export(stack)
    pending = [
        one["resource"] for one in state["deployment"].pop("pending_operations", []) if one["type"] == "creating"
    ]
    known = state["deployment"].setdefault("resources", [])
    decided = _decisions(user, standing, stack, known, pending)
    known += [{**one, "id": identifier} for one in pending if (identifier := decided[one["urn"]]) is not None]
    user.replace_state(stack, state)
    user.refresh(stack, "--skip-preview").must_succeed()
    return [f"{urn}: {f'taken in as {identifier}' if identifier else 'cleared'}" for urn, identifier in decided.items()]


def _decisions(
    user: Workspace, standing: Standing, stack: str, known: Sequence[Resource], pending: Sequence[Resource]
) -> dict[str, str | None]:
    """By urn: the identifier of what was made; None where nothing was, or where making it again does no harm."""
    cloud = Cloud(standing.site, region=REGION, profile=None)
    for one in pending:
        if kind_of(one["urn"]) == _RELEASE:
            _uninstall(standing, one["inputs"]["name"], one["inputs"]["namespace"])
    listed = look(user, stack) if any(kind_of(one["urn"]) in LISTED for one in pending) else None
    taken = {one.get("id") for one in known}
    decided: dict[str, str | None] = {}
    for one in pending:
        found = (name for name in _candidates(cloud, listed, kind_of(one["urn"]), one["inputs"]) if name not in taken)
        decided[one["urn"]] = identifier = next(found, None)
        taken.add(identifier)
    return decided


def _candidates(cloud: Cloud, listed: Listing | None, kind: str, inputs: Inputs) -> Iterator[str]:
    """What is there of a kind and is as asked."""
    if kind in NAMED_BY_US:
        names = [NAMED_BY_US[kind](inputs)]
    elif kind in ASKED_FOR:
        names = ASKED_FOR[kind](cloud, inputs)
    else:
        names = [] if listed is None or kind not in LISTED else listed.ids(LISTED[kind])
    # Two subnets of one stack differ in what they must have and in their tags alone.
    asked = [name for name in (*KINDS[kind].REQUIRED, "tags") if name in inputs] if kind in LISTED else []
    for name in names:
        live = KINDS[kind].live(cloud, name)
        if live is not None and all(same(live.get(key), inputs[key]) for key in asked):
            yield name


def _buckets(cloud: Cloud, prefix: str) -> list[str]:
    """`aws s3 ls`; the newest first: an older one was kept by choice."""
    found = [one for one in cloud.s3.list_buckets()["Buckets"] if one["Name"].startswith(prefix)]
    return [one["Name"] for one in sorted(found, key=lambda one: one["CreationDate"], reverse=True)]


def _associations(cloud: Cloud, *, table: str, subnet: str) -> list[str]:
    (found,) = cloud.ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"]
    return [one["RouteTableAssociationId"] for one in found["Associations"] if one.get("SubnetId") == subnet]


def _identities(cloud: Cloud, *, cluster: str, namespace: str, account: str) -> list[str]:
    found = cloud.eks.list_pod_identity_associations(clusterName=cluster, namespace=namespace, serviceAccount=account)[
        "associations"
    ]
    return [f"{cluster}:{one['associationId']}" for one in found]


def _uninstall(standing: Standing, name: str, namespace: str) -> None:
    site = standing.site
    subprocess.run(
        [site.tools / "helm", "uninstall", name, "--namespace", namespace, "--ignore-not-found", "--wait"],
        env={"KUBECONFIG": str(site.kubeconfig), "HOME": str(site.folder / "helm"), "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
    )


def _route(table: str, destination: str) -> str:
    """As the real provider names it (pulumi-aws, from terraform's resource_aws_route)."""
    return f"r-{table}{zlib.crc32(destination.encode())}_{destination}"
