"""EKS of the account: what it makes beside itself, what it waits for, what it refuses."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cloud.ground import ACCOUNT
from tests.e2e.cloud.inventory import inventory
from tests.e2e.operations import read
from tests.e2e.site import Site
from workloads.catalogue.versions import KUBERNETES

pytestmark = pytest.mark.e2e


def test_a_cluster_is_active_for_whoever_waited(ground):
    made = ground.eks.create_cluster(**ground.cluster())["cluster"]
    assert made["status"] == "CREATING"
    assert ground.eks.describe_cluster(name="lab")["cluster"]["status"] == "ACTIVE"


def test_eks_makes_the_group_whose_rules_efa_checks(ground):
    group_id = ground.up()["resourcesVpcConfig"]["clusterSecurityGroupId"]
    group = ground.ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"][0]

    def pairs(rules):
        return [pair["GroupId"] for rule in rules if rule["IpProtocol"] == "-1" for pair in rule["UserIdGroupPairs"]]

    assert pairs(group["IpPermissions"]) == [group_id]
    assert pairs(group["IpPermissionsEgress"]) == [group_id]
    assert [r["CidrIp"] for rule in group["IpPermissionsEgress"] for r in rule["IpRanges"]] == ["0.0.0.0/0"]
    assert {"Key": "kubernetes.io/cluster/lab", "Value": "owned"} in group["Tags"]


def test_a_cluster_holds_its_subnets_until_somebody_waited_for_its_end(ground, cloud, refused):
    ground.up()
    assert refused(ground.ec2.delete_subnet, SubnetId=ground.subnets[0]) == "DependencyViolation"
    ground.eks.delete_cluster(name="lab")
    assert refused(ground.ec2.delete_subnet, SubnetId=ground.subnets[0]) == "DependencyViolation"
    assert refused(ground.eks.describe_cluster, name="lab") == "ResourceNotFoundException"

    for subnet in ground.subnets:
        ground.ec2.delete_subnet(SubnetId=subnet)
    ground.ec2.delete_vpc(VpcId=ground.vpc)
    assert inventory(cloud) == {"iam:role": ["cluster", "node"]}


def test_a_leftover_interface_keeps_the_clusters_group(ground, cloud):
    group = ground.up()["resourcesVpcConfig"]["clusterSecurityGroupId"]
    ground.ec2.create_network_interface(SubnetId=ground.subnets[0], Groups=[group])
    ground.eks.delete_cluster(name="lab")
    ground.eks.get_waiter("cluster_deleted").wait(name="lab")
    assert inventory(cloud)["ec2:security-group"] == [group]


def test_a_cluster_stays_while_it_has_nodes_and_they_hold_interfaces(ground, cloud, refused):
    ground.up_with_nodes()
    assert refused(ground.eks.delete_cluster, name="lab") == "ResourceInUseException"

    ground.eks.delete_nodegroup(clusterName="lab", nodegroupName="system")
    assert refused(ground.eks.delete_cluster, name="lab") == "ResourceInUseException"
    assert len(inventory(cloud)["ec2:instance"]) == 2
    ground.eks.get_waiter("nodegroup_deleted").wait(clusterName="lab", nodegroupName="system")
    assert not {"ec2:instance", "ec2:volume"} & set(inventory(cloud))
    ground.eks.delete_cluster(name="lab")


def test_a_node_group_is_instances_over_its_subnets_and_an_entry(ground):
    group = ground.up_with_nodes()
    instances = [
        one
        for reservation in ground.ec2.describe_instances(
            Filters=[{"Name": "tag:eks:nodegroup-name", "Values": ["system"]}]
        )["Reservations"]
        for one in reservation["Instances"]
    ]
    assert group["status"] == "ACTIVE"
    assert {one["SubnetId"] for one in instances} == set(ground.subnets)
    assert {one["InstanceType"] for one in instances} == {"m7i.xlarge"}
    entry = ground.eks.describe_access_entry(clusterName="lab", principalArn=f"{ACCOUNT}:role/node")["accessEntry"]
    assert entry["type"] == "EC2_LINUX"


def test_a_node_group_grows_and_shrinks(ground, cloud):
    ground.up_with_nodes()
    for size in (3, 1):
        ground.eks.update_nodegroup_config(
            clusterName="lab",
            nodegroupName="system",
            scalingConfig={"minSize": 1, "maxSize": 3, "desiredSize": size},
        )
        assert len(inventory(cloud)["ec2:instance"]) == size


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change of arguments, by a dotted path."""

    def changed(arguments: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        for parent in parents:
            arguments = arguments[parent]
        arguments[last] = value

    return changed


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (change("name", "-lab"), "InvalidParameterException"),
        (change("name", "l" * 101), "InvalidParameterException"),
        (change("version", "1.20"), "InvalidParameterException"),
        (change("roleArn", f"{ACCOUNT}:role/nobody"), "InvalidParameterException"),
        (change("roleArn", f"{ACCOUNT}:role/node"), "InvalidParameterException"),
        (change("roleArn", "arn:aws:iam::999999999999:role/cluster"), "AccessDeniedException"),
        (change("resourcesVpcConfig.subnetIds", ["subnet-1", "subnet-2"]), "InvalidParameterException"),
        (change("resourcesVpcConfig.securityGroupIds", ["sg-1"]), "InvalidParameterException"),
    ],
)
def test_what_a_cluster_is_refused_for(ground, refused, cloud, changed, code):
    arguments = ground.cluster()
    changed(arguments)
    assert refused(ground.eks.create_cluster, **arguments) == code
    assert "eks:cluster" not in inventory(cloud)


def test_a_cluster_wants_two_zones(ground, refused):
    one = {"subnetIds": ground.subnets[:1]}
    arguments = ground.cluster(resourcesVpcConfig=one)
    assert refused(ground.eks.create_cluster, **arguments) == "InvalidParameterException"


def test_a_cluster_stands_in_no_excluded_zone(ground, refused):
    # us-east-1e is use1-az3.
    excluded = ground.ec2.create_subnet(VpcId=ground.vpc, CidrBlock="10.0.64.0/20", AvailabilityZone="us-east-1e")
    subnets = {"subnetIds": [ground.subnets[0], excluded["Subnet"]["SubnetId"]]}
    arguments = ground.cluster(resourcesVpcConfig=subnets)
    assert refused(ground.eks.create_cluster, **arguments) == "UnsupportedAvailabilityZoneException"


def test_a_clusters_role_has_its_policy(ground, refused):
    ground.iam.detach_role_policy(RoleName="cluster", PolicyArn="arn:aws:iam::aws:policy/AmazonEKSClusterPolicy")
    assert refused(ground.eks.create_cluster, **ground.cluster()) == "InvalidParameterException"


def test_a_name_is_given_once(ground, refused):
    ground.up()
    assert refused(ground.eks.create_cluster, **ground.cluster()) == "ResourceInUseException"
    ground.eks.create_nodegroup(**ground.nodes())
    assert refused(ground.eks.create_nodegroup, **ground.nodes()) == "ResourceInUseException"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (change("clusterName", "other"), "ResourceNotFoundException"),
        (change("nodeRole", f"{ACCOUNT}:role/nobody"), "InvalidParameterException"),
        (change("nodeRole", f"{ACCOUNT}:role/cluster"), "InvalidParameterException"),
        (change("nodeRole", "arn:aws:iam::999999999999:role/node"), "AccessDeniedException"),
        (change("subnets", ["subnet-1"]), "InvalidParameterException"),
        (change("instanceTypes", ["m7i.nosuch"]), "InvalidParameterException"),
        (change("amiType", "AL2_x86_64"), "InvalidParameterException"),
        (change("nodegroupName", "n" * 64), "InvalidParameterException"),
        (change("scalingConfig.desiredSize", 3), "InvalidParameterException"),
    ],
)
def test_what_a_node_group_is_refused_for(ground, refused, changed, code):
    ground.up()
    arguments = ground.nodes()
    changed(arguments)
    assert refused(ground.eks.create_nodegroup, **arguments) == code


def test_a_node_group_wants_an_active_cluster(ground, refused):
    ground.eks.create_cluster(**ground.cluster())
    assert refused(ground.eks.create_nodegroup, **ground.nodes()) == "InvalidRequestException"


def test_an_addon_of_pods_is_healthy_only_on_nodes(ground):
    ground.up()
    for addon in ("coredns", "eks-pod-identity-agent"):
        ground.eks.create_addon(clusterName="lab", addonName=addon)

    def status(addon):
        return ground.eks.describe_addon(clusterName="lab", addonName=addon)["addon"]["status"]

    assert (status("coredns"), status("eks-pod-identity-agent")) == ("DEGRADED", "ACTIVE")
    ground.eks.create_nodegroup(**ground.nodes())
    ground.eks.describe_nodegroup(clusterName="lab", nodegroupName="system")
    assert status("coredns") == "ACTIVE"


def test_addons_of_the_account(ground, refused):
    ground.up()
    (offered,) = ground.eks.describe_addon_versions(addonName="coredns", kubernetesVersion=KUBERNETES)["addons"]
    version = offered["addonVersions"][0]["addonVersion"]
    ground.eks.create_addon(clusterName="lab", addonName="coredns", addonVersion=version)

    assert refused(ground.eks.create_addon, clusterName="lab", addonName="coredns") == "ResourceInUseException"
    assert refused(ground.eks.create_addon, clusterName="lab", addonName="nosuch") == "InvalidParameterException"
    values = {"clusterName": "lab", "addonName": "vpc-cni", "configurationValues": "{"}
    assert refused(ground.eks.create_addon, **values) == "InvalidParameterException"
    old = {"clusterName": "lab", "addonName": "vpc-cni", "addonVersion": "v0"}
    assert refused(ground.eks.create_addon, **old) == "InvalidParameterException"

    ground.eks.update_addon(clusterName="lab", addonName="coredns", configurationValues='{"replicaCount": 1}')
    ground.eks.delete_addon(clusterName="lab", addonName="coredns")
    ground.eks.get_waiter("addon_deleted").wait(clusterName="lab", addonName="coredns")
    assert ground.eks.list_addons(clusterName="lab")["addons"] == []


def test_tags_of_what_eks_made(ground):
    arn = ground.up()["arn"]
    ground.eks.tag_resource(resourceArn=arn, tags={"a": "1", "b": "2"})
    ground.eks.untag_resource(resourceArn=arn, tagKeys=["a"])
    assert ground.eks.list_tags_for_resource(resourceArn=arn)["tags"] == {"b": "2"}


def test_a_cluster_changes_in_place(ground, refused):
    ground.up()
    config = {"endpointPrivateAccess": True, "publicAccessCidrs": ["192.0.2.0/24"]}
    ground.eks.update_cluster_config(name="lab", resourcesVpcConfig=config)
    ground.eks.update_cluster_version(name="lab", version="1.36")
    cluster = ground.eks.describe_cluster(name="lab")["cluster"]
    assert cluster["version"] == "1.36"
    assert config.items() <= cluster["resourcesVpcConfig"].items()
    assert refused(ground.eks.update_cluster_version, name="lab", version="1.31") == "InvalidParameterException"


def test_a_protected_cluster_stays(ground, refused):
    ground.up()
    ground.eks.update_cluster_config(name="lab", deletionProtection=True)
    assert refused(ground.eks.delete_cluster, name="lab") == "InvalidRequestException"


@pytest.fixture
def site(cloud, cloud_folder) -> Site:
    """A site whose control plane nobody started."""
    certificate = cloud_folder / "ca.crt"
    certificate.write_text("a certificate")
    server = {"server": "https://127.0.0.1:1", "certificate-authority": str(certificate)}
    kubeconfig = cloud_folder / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "a",
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                "users": [{"name": "a", "user": {}}],
                "clusters": [{"name": "a", "cluster": server}],
            }
        )
    )
    made = Site(folder=cloud_folder, tools=Path("/"), kubeconfig=kubeconfig, aws_endpoint=cloud, charts=Path("/"))
    made.save()
    return made


@pytest.mark.usefixtures("site")
def test_a_cluster_of_a_site_is_the_sites_control_plane(ground):
    cluster = ground.up()
    assert cluster["endpoint"] == "https://127.0.0.1:1"
    assert base64.b64decode(cluster["certificateAuthority"]["data"]) == b"a certificate"


def test_deleting_a_cluster_counts_what_is_left_in_it(site, ground):
    ground.up()
    ground.eks.delete_cluster(name="lab")
    deleted, census = read(site.operations)[-2:]
    assert (deleted.verb, census.verb) == ("DeleteCluster", "census")
    # Nobody answers there, which no test may take for an empty cluster.
    assert (census.who, census.subject, census.outcome) == ("cluster", "lab", "unreachable")


def test_a_refused_deletion_counts_nothing(site, ground, refused):
    ground.up_with_nodes()
    refused(ground.eks.delete_cluster, name="lab")
    assert read(site.operations)[-1].verb == "DeleteCluster"
    assert not [one for one in read(site.operations) if one.verb == "census"]


def test_without_a_site_nothing_is_counted(ground, log):
    ground.up()
    ground.eks.delete_cluster(name="lab")
    assert log()[-1] == ("DeleteCluster", "lab", "ok")
