"""Instances, placement groups and what a destroy may find of them."""

import pytest

from tests.e2e.cloud.account import AMIS
from tests.e2e.cloud.inventory import inventory
from tests.e2e.cloud.leftovers import leave_interface, leave_node

pytestmark = pytest.mark.e2e


@pytest.fixture
def group(ground) -> str:
    return str(ground.ec2.create_security_group(VpcId=ground.vpc, GroupName="n", Description="n")["GroupId"])


@pytest.fixture
def profile(ground) -> str:
    ground.iam.create_instance_profile(InstanceProfileName="gpu-node")
    ground.iam.add_role_to_instance_profile(InstanceProfileName="gpu-node", RoleName="node")
    return "gpu-node"


@pytest.fixture
def launch(ground, group, profile):
    def arguments(**changes):
        return {
            "ImageId": AMIS["x86_64", "nvidia"],
            "InstanceType": "g6e.8xlarge",
            "MinCount": 1,
            "MaxCount": 1,
            "SubnetId": ground.subnets[0],
            "SecurityGroupIds": [group],
            "IamInstanceProfile": {"Name": profile},
            **changes,
        }

    return arguments


def test_an_instance_that_shuts_down_holds_subnet_and_group_until_somebody_waited(
    ground, launch, group, cloud, refused
):
    instance = ground.ec2.run_instances(**launch())["Instances"][0]["InstanceId"]
    assert refused(ground.ec2.delete_subnet, SubnetId=ground.subnets[0]) == "DependencyViolation"

    (ending,) = ground.ec2.terminate_instances(InstanceIds=[instance])["TerminatingInstances"]
    assert ending["CurrentState"]["Name"] == "shutting-down"
    assert refused(ground.ec2.delete_subnet, SubnetId=ground.subnets[0]) == "DependencyViolation"
    assert refused(ground.ec2.delete_security_group, GroupId=group) == "DependencyViolation"

    ground.ec2.get_waiter("instance_terminated").wait(InstanceIds=[instance])
    ground.ec2.delete_subnet(SubnetId=ground.subnets[0])
    ground.ec2.delete_security_group(GroupId=group)
    assert not {"ec2:instance", "ec2:volume", "ec2:network-interface"} & set(inventory(cloud))


def test_an_instance_that_is_protected_is_not_terminated(ground, launch, refused):
    instance = ground.ec2.run_instances(**launch())["Instances"][0]["InstanceId"]
    ground.ec2.modify_instance_attribute(InstanceId=instance, DisableApiTermination={"Value": True})
    assert refused(ground.ec2.terminate_instances, InstanceIds=[instance]) == "OperationNotPermitted"
    ground.ec2.modify_instance_attribute(InstanceId=instance, DisableApiTermination={"Value": False})
    ground.ec2.terminate_instances(InstanceIds=[instance])


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"ImageId": "ami-1"}, "InvalidAMIID.NotFound"),
        ({"InstanceType": "g6e.nosuch"}, "InvalidInstanceType"),
        ({"SubnetId": "subnet-1"}, "InvalidSubnetID.NotFound"),
        ({"SubnetId": ""}, "VPCIdNotSpecified"),
        ({"SecurityGroupIds": ["sg-1"]}, "InvalidGroup.NotFound"),
        ({"IamInstanceProfile": {"Name": "nobody"}}, "InvalidParameterValue"),
        ({"IamInstanceProfile": {"Name": "empty"}}, "InvalidParameterValue"),
        ({"Placement": {"GroupName": "nowhere"}}, "InvalidPlacementGroup.Unknown"),
        ({"LaunchTemplate": {"LaunchTemplateId": "lt-1"}}, "InvalidLaunchTemplateId.NotFound"),
    ],
)
def test_what_a_launch_is_refused_for(ground, launch, refused, cloud, changes, code):
    ground.iam.create_instance_profile(InstanceProfileName="empty")
    assert refused(ground.ec2.run_instances, **launch(**changes)) == code
    assert "ec2:instance" not in inventory(cloud)


def test_an_instance_takes_no_group_of_another_vpc(ground, launch, refused):
    other = ground.ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    group = ground.ec2.create_security_group(VpcId=other, GroupName="o", Description="o")["GroupId"]
    assert refused(ground.ec2.run_instances, **launch(SecurityGroupIds=[group])) == "InvalidGroup.NotFound"


def test_a_placement_group_stays_while_an_instance_is_in_it(ground, launch, refused):
    ground.ec2.create_placement_group(GroupName="pg", Strategy="cluster")
    instance = ground.ec2.run_instances(**launch(Placement={"GroupName": "pg"}))["Instances"][0]["InstanceId"]
    assert refused(ground.ec2.delete_placement_group, GroupName="pg") == "InvalidPlacementGroup.InUse"
    ground.ec2.terminate_instances(InstanceIds=[instance])
    assert refused(ground.ec2.delete_placement_group, GroupName="pg") == "InvalidPlacementGroup.InUse"
    ground.ec2.describe_instances()
    ground.ec2.delete_placement_group(GroupName="pg")


def test_placement_groups_have_names_ids_and_tags(client, refused):
    ec2 = client("ec2")
    tags = [{"ResourceType": "placement-group", "Tags": [{"Key": "a", "Value": "1"}]}]
    made = ec2.create_placement_group(GroupName="pg", Strategy="cluster", TagSpecifications=tags)["PlacementGroup"]
    ec2.create_tags(Resources=[made["GroupId"]], Tags=[{"Key": "b", "Value": "2"}, {"Key": "c", "Value": "3"}])
    ec2.delete_tags(Resources=[made["GroupId"]], Tags=[{"Key": "c"}])

    for arguments in (
        {"GroupNames": ["pg"]},
        {"GroupIds": [made["GroupId"]]},
        {"Filters": [{"Name": "tag:a", "Values": ["1"]}, {"Name": "strategy", "Values": ["cluster"]}]},
    ):
        (found,) = ec2.describe_placement_groups(**arguments)["PlacementGroups"]
        assert found["Tags"] == [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]
    assert ec2.describe_placement_groups(Filters=[{"Name": "tag:a", "Values": ["2"]}])["PlacementGroups"] == []
    assert refused(ec2.create_placement_group, GroupName="pg") == "InvalidPlacementGroup.Duplicate"
    assert refused(ec2.delete_placement_group, GroupName="other") == "InvalidPlacementGroup.Unknown"
    assert refused(ec2.describe_placement_groups, GroupNames=["other"]) == "InvalidPlacementGroup.Unknown"


def test_a_leftover_interface_is_found_by_the_cnis_tags(ground, group, cloud):
    made = leave_interface(ground.ec2, cluster="lab", subnet_id=ground.subnets[0], group_ids=[group], instance_id="i-1")
    for name, value in (
        ("tag:cluster.k8s.amazonaws.com/name", "lab"),
        ("tag-key", "node.k8s.amazonaws.com/instance_id"),
    ):
        found = ground.ec2.describe_network_interfaces(
            Filters=[{"Name": name, "Values": [value]}, {"Name": "status", "Values": ["available"]}]
        )["NetworkInterfaces"]
        assert [one["NetworkInterfaceId"] for one in found] == [made]
    assert inventory(cloud)["ec2:network-interface"] == [made]
    ground.ec2.delete_network_interface(NetworkInterfaceId=made)


def test_a_leftover_node_is_found_by_karpenters_tags_and_swept(ground, group, profile, cloud):
    before = inventory(cloud)
    ground.ec2.create_placement_group(GroupName="pg", Strategy="cluster")
    node = leave_node(
        ground.ec2,
        cluster="lab",
        node_pool="gpu-g6e8xl",
        subnet_id=ground.subnets[0],
        group_ids=[group],
        instance_profile=profile,
        placement_group="pg",
    )
    filters = [
        {"Name": "tag:kubernetes.io/cluster/lab", "Values": ["owned"]},
        {"Name": "tag-key", "Values": ["karpenter.sh/nodepool"]},
    ]
    (reservation,) = ground.ec2.describe_instances(Filters=filters)["Reservations"]
    (instance,) = reservation["Instances"]
    assert (instance["InstanceId"], instance["State"]["Name"]) == (node.instance_id, "running")
    assert len(inventory(cloud)["ec2:volume"]) == 1
    (template,) = ground.ec2.describe_launch_templates(Filters=filters)["LaunchTemplates"]
    assert template["LaunchTemplateId"] == node.launch_template_id

    ground.ec2.terminate_instances(InstanceIds=[node.instance_id])
    ground.ec2.get_waiter("instance_terminated").wait(InstanceIds=[node.instance_id])
    ground.ec2.delete_launch_template(LaunchTemplateId=node.launch_template_id)
    ground.ec2.delete_placement_group(GroupName="pg")
    assert inventory(cloud) == before


def test_a_dry_run_makes_nothing_and_says_that_it_could(ground, launch, cloud, log, refused):
    before = log()
    assert refused(ground.ec2.run_instances, DryRun=True, **launch()) == "DryRunOperation"
    assert refused(ground.ec2.run_instances, DryRun=True, **launch(ImageId="ami-1")) == "InvalidAMIID.NotFound"
    assert "ec2:instance" not in inventory(cloud)
    assert [one for one in log() if one not in before] == []
