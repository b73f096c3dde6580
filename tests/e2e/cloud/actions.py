"""Which action meets which rules, who does it, and what happens after moto did it."""

from collections.abc import Callable, Mapping, Sequence

from tests.e2e.cloud import (
    bucket_rules,
    capacity_reservations,
    eks_access,
    eks_addons,
    eks_clusters,
    eks_nodes,
    identity_rules,
    instance_rules,
    inventory,
    lustre,
    network_rules,
    references,
)
from tests.e2e.cloud.account import Account
from tests.e2e.cloud.wire import Answer, Call

Rule = Callable[[Account, Call], None]
Handler = Callable[[Account, Call], Answer | None]
Effect = Callable[[Account, Call, Answer], None]

SERVICES = frozenset(
    {"ec2", "eks", "events", "fsx", "iam", "logs", "pricing", "resourcegroupstaggingapi", "s3", "service-quotas",
     "sqs", "ssm", "sts"}
)  # fmt: skip
"""Services of the account; the name of any other one is told to who asks."""

RULES: Mapping[str, Sequence[Rule]] = {
    "ec2:AssociateRouteTable": [network_rules.one_route_table_a_subnet],
    "ec2:AttachInternetGateway": [network_rules.one_internet_gateway_a_vpc],
    "ec2:CreateNatGateway": [network_rules.nat_gateway_can_stand],
    "ec2:CreateRoute": [network_rules.route_leads_somewhere],
    "ec2:CreateSecurityGroup": [network_rules.create_vpc_id_given],
    "ec2:CreateSubnet": [network_rules.subnet_in_region],
    "ec2:CreateVpcEndpoint": [network_rules.endpoint_can_stand],
    "ec2:DeleteNetworkInterface": [network_rules.interface_free],
    "ec2:DeleteRouteTable": [network_rules.route_table_not_main],
    "ec2:DeleteSecurityGroup": [network_rules.group_unused],
    "ec2:DeleteSubnet": [network_rules.subnet_empty],
    "ec2:DeleteVpc": [network_rules.vpc_empty],
    "ec2:DeleteVpcEndpoints": [network_rules.endpoints_exist],
    "ec2:DescribeInstances": [instance_rules.settle_instances],
    "ec2:DescribeNatGateways": [network_rules.settle_nat_gateways],
    "ec2:DescribeVpcEndpoints": [network_rules.forget_deleted_endpoints],
    "ec2:DetachInternetGateway": [network_rules.no_public_addresses],
    "ec2:ReleaseAddress": [network_rules.address_free],
    "ec2:RunInstances": [instance_rules.launch_is_possible],
    "iam:AttachRolePolicy": [identity_rules.role_has_room],
    "iam:CreateInstanceProfile": [identity_rules.names_fit],
    "iam:CreatePolicy": [identity_rules.names_fit, identity_rules.policy_fits],
    "iam:CreateRole": [identity_rules.names_fit, identity_rules.trust_is_a_policy],
    "iam:CreateServiceLinkedRole": [identity_rules.linked_role_is_new],
    "iam:DeletePolicy": [identity_rules.policy_unattached],
    "iam:DeleteRole": [identity_rules.role_is_ours],
    "s3:CreateBucket": [bucket_rules.bucket_name_fits],
}

HANDLERS: Mapping[str, Handler] = {
    "ec2:CancelCapacityReservation": capacity_reservations.cancel,
    "ec2:CreateCapacityReservation": capacity_reservations.create,
    "ec2:CreatePlacementGroup": instance_rules.create_placement_group,
    "ec2:CreateTags": instance_rules.create_tags,
    "ec2:DeleteNatGateway": network_rules.delete_nat_gateway,
    "ec2:DeletePlacementGroup": instance_rules.delete_placement_group,
    "ec2:DeleteTags": instance_rules.delete_tags,
    "ec2:DescribeAvailabilityZones": network_rules.describe_availability_zones,
    "ec2:DescribeCapacityReservations": capacity_reservations.describe,
    "ec2:DescribePlacementGroups": instance_rules.describe_placement_groups,
    "ec2:TerminateInstances": instance_rules.terminate_instances,
    "eks:AssociateAccessPolicy": eks_access.associate_access_policy,
    "eks:CreateAccessEntry": eks_access.create_access_entry,
    "eks:CreateAddon": eks_addons.create_addon,
    "eks:CreateCluster": eks_clusters.create_cluster,
    "eks:CreateNodegroup": eks_nodes.create_nodegroup,
    "eks:CreatePodIdentityAssociation": eks_access.create_pod_identity_association,
    "eks:DeleteAccessEntry": eks_access.delete_access_entry,
    "eks:DeleteAddon": eks_addons.delete_addon,
    "eks:DeleteCluster": eks_clusters.delete_cluster,
    "eks:DeleteNodegroup": eks_nodes.delete_nodegroup,
    "eks:DeletePodIdentityAssociation": eks_access.delete_pod_identity_association,
    "eks:DescribeAccessEntry": eks_access.describe_access_entry,
    "eks:DescribeAddon": eks_addons.describe_addon,
    "eks:DescribeAddonVersions": eks_addons.describe_addon_versions,
    "eks:DescribeCluster": eks_clusters.describe_cluster,
    "eks:DescribeClusterVersions": eks_clusters.describe_cluster_versions,
    "eks:DescribeNodegroup": eks_nodes.describe_nodegroup,
    "eks:DescribePodIdentityAssociation": eks_access.describe_pod_identity_association,
    "eks:DescribeUpdate": eks_clusters.describe_update,
    "eks:DisassociateAccessPolicy": eks_access.disassociate_access_policy,
    "eks:ListAccessEntries": eks_access.list_access_entries,
    "eks:ListAddons": eks_addons.list_addons,
    "eks:ListAssociatedAccessPolicies": eks_access.list_associated_access_policies,
    "eks:ListClusters": eks_clusters.list_clusters,
    "eks:ListNodegroups": eks_nodes.list_nodegroups,
    "eks:ListPodIdentityAssociations": eks_access.list_pod_identity_associations,
    "eks:ListTagsForResource": eks_clusters.list_tags,
    "eks:TagResource": eks_clusters.tag_resource,
    "eks:UntagResource": eks_clusters.untag_resource,
    "eks:UpdateAccessEntry": eks_access.update_access_entry,
    "eks:UpdateAddon": eks_addons.update_addon,
    "eks:UpdateClusterConfig": eks_clusters.update_cluster_config,
    "eks:UpdateClusterVersion": eks_clusters.update_cluster_version,
    "eks:UpdateNodegroupConfig": eks_nodes.update_nodegroup_config,
    "eks:UpdateNodegroupVersion": eks_nodes.update_nodegroup_version,
    "eks:UpdatePodIdentityAssociation": eks_access.update_pod_identity_association,
    "fsx:CreateFileSystem": lustre.create_file_system,
    "fsx:DeleteFileSystem": lustre.delete_file_system,
    "fsx:DescribeBackups": lustre.describe_backups,
    "fsx:DescribeFileSystems": lustre.describe_file_systems,
    "fsx:ListTagsForResource": lustre.list_tags,
    "fsx:TagResource": lustre.tag_resource,
    "fsx:UntagResource": lustre.untag_resource,
    "fsx:UpdateFileSystem": lustre.update_file_system,
    "iam:ListInstanceProfiles": identity_rules.list_instance_profiles,
    "pricing:GetProducts": references.get_products,
    "resourcegroupstaggingapi:GetResources": inventory.get_resources,
    "service-quotas:GetAWSDefaultServiceQuota": references.get_default_service_quota,
    "service-quotas:GetServiceQuota": references.get_service_quota,
    "service-quotas:ListServiceQuotas": references.list_service_quotas,
    "ssm:GetParameter": references.get_parameter,
}
"""What we do ourselves; None as an answer hands it on to moto."""

OURS = frozenset({"eks", "fsx", "pricing", "service-quotas"})
"""Services of which moto sees nothing: an action that isn't above is an error, whatever moto would do."""

AFTER: Mapping[str, Effect] = {
    "ec2:CreateNatGateway": network_rules.nat_gateway_stands,
    "ec2:CreateSubnet": network_rules.subnet_is_private,
    "ec2:DeleteSubnet": network_rules.subnet_gone,
    "ec2:RunInstances": instance_rules.launched,
}
