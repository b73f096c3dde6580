"""All rows, by type token."""

from collections.abc import Mapping

from tests.e2e.providers.aws import eks, eks_access, gateways, identity, launching, messages, network, storage
from tests.e2e.providers.aws.kinds import Kind

_ROWS: tuple[type[Kind], ...] = (
    eks.Addon,
    eks.Cluster,
    eks.NodeGroup,
    eks_access.AccessEntry,
    eks_access.AccessPolicyAssociation,
    eks_access.PodIdentityAssociation,
    gateways.Eip,
    gateways.NatGateway,
    gateways.PlacementGroup,
    gateways.SecurityGroup,
    gateways.VpcEndpoint,
    identity.InstanceProfile,
    identity.Policy,
    identity.Role,
    identity.RolePolicy,
    identity.RolePolicyAttachment,
    launching.LaunchTemplate,
    messages.EventRule,
    messages.EventTarget,
    messages.LogGroup,
    messages.Queue,
    messages.QueuePolicy,
    network.InternetGateway,
    network.Route,
    network.RouteTable,
    network.RouteTableAssociation,
    network.Subnet,
    network.Vpc,
    storage.Bucket,
    storage.BucketLifecycleConfiguration,
    storage.BucketPolicy,
    storage.BucketPublicAccessBlock,
    storage.BucketServerSideEncryptionConfiguration,
    storage.BucketVersioning,
    storage.LustreFileSystem,
)

KINDS: Mapping[str, Kind] = {row.TYPE: row() for row in _ROWS}
