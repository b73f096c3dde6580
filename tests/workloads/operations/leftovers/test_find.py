"""What `topo verify-destroyed` finds: each kind that may be left, what is kept, what is somebody else's."""

from collections.abc import Callable
from typing import Any

import pytest
from moto.ec2.responses import EC2Response

from tests.workloads.operations.leftovers import scene
from tests.workloads.operations.leftovers.scene import (
    ACCOUNT,
    CNI,
    KARPENTER,
    KEPT,
    NAMESAKE,
    NEIGHBOUR,
    OWN,
    OWNER,
    Tags,
    aws,
    tag_list,
)
from workloads.operations.leftovers.find import FINDERS, find
from workloads.operations.leftovers.inventory import Leftover


def found() -> list[Leftover]:
    inventory = find(aws(), OWNER)
    assert inventory.unproven == []
    return list(inventory.left)


def kinds() -> dict[str, str]:
    return {one.kind: one.id for one in found()}


def test_an_empty_account_is_proven_empty():
    inventory = find(aws(), OWNER)
    assert (inventory.left, inventory.kept, inventory.unproven) == ([], [], [])
    assert inventory.is_destroyed


def ec2():
    return aws().client("ec2")


def specified(kind: str, tags: Tags) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": tag_list(tags)}]


def nat_gateway(tags: Tags) -> str:
    inside = scene.subnet(scene.vpc({}), {})
    address = ec2().allocate_address(Domain="vpc")["AllocationId"]
    made = ec2().create_nat_gateway(
        SubnetId=inside, AllocationId=address, TagSpecifications=specified("natgateway", tags)
    )
    return str(made["NatGateway"]["NatGatewayId"])


def elastic_ip(tags: Tags) -> str:
    made = ec2().allocate_address(Domain="vpc", TagSpecifications=specified("elastic-ip", tags))
    return str(made["AllocationId"])


def endpoint(tags: Tags) -> str:
    made = ec2().create_vpc_endpoint(
        VpcId=scene.vpc({}), ServiceName="com.amazonaws.us-east-1.s3", TagSpecifications=specified("vpc-endpoint", tags)
    )
    return str(made["VpcEndpoint"]["VpcEndpointId"])


def route_table(tags: Tags) -> str:
    made = ec2().create_route_table(VpcId=scene.vpc({}), TagSpecifications=specified("route-table", tags))
    return str(made["RouteTable"]["RouteTableId"])


def internet_gateway(tags: Tags) -> str:
    made = ec2().create_internet_gateway(TagSpecifications=specified("internet-gateway", tags))
    return str(made["InternetGateway"]["InternetGatewayId"])


def queue(tags: Tags) -> str:
    aws().client("sqs").create_queue(QueueName="topolab-dev", tags=dict(tags))
    return "topolab-dev"


def rule(tags: Tags) -> str:
    aws().client("events").put_rule(Name="topolab-dev-on-spot", EventPattern="{}", Tags=tag_list(tags))
    return "topolab-dev-on-spot"


def role(tags: Tags) -> str:
    aws().client("iam").create_role(
        RoleName="eks-eksRole-role-1a2b", AssumeRolePolicyDocument="{}", Tags=tag_list(tags)
    )
    return "eks-eksRole-role-1a2b"


def policy(tags: Tags) -> str:
    document = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}'
    aws().client("iam").create_policy(
        PolicyName="topolab-dev-node-lifecycle", PolicyDocument=document, Tags=tag_list(tags)
    )
    return "topolab-dev-node-lifecycle"


def profile(tags: Tags) -> str:
    scene.instance_profile("topolab-dev-gpu-node", tags=tags)
    return "topolab-dev-gpu-node"


def bucket(tags: Tags) -> str:
    scene.bucket("topolab-dev-7f3a", tags)
    return "topolab-dev-7f3a"


def cluster(tags: Tags) -> str:
    scene.cluster(scene.subnet(scene.vpc({}), {}), tags)
    return "topolab-dev"


EACH: dict[str, Callable[[Tags], str]] = {
    "instance": lambda tags: scene.instance(scene.subnet(scene.vpc({}), {}), tags),
    "NAT gateway": nat_gateway,
    "elastic IP": elastic_ip,
    "volume": scene.volume,
    "VPC endpoint": endpoint,
    "launch template": lambda tags: scene.launch_template("lt", tags),
    "security group": lambda tags: scene.security_group("g", scene.vpc({}), tags),
    "route table": route_table,
    "internet gateway": internet_gateway,
    "subnet": lambda tags: scene.subnet(scene.vpc({}), tags),
    "VPC": scene.vpc,
    "network interface": lambda tags: scene.interface(scene.subnet(scene.vpc({}), {}), tags),
    "file system": lambda tags: scene.file_system(scene.subnet(scene.vpc({}), {}), tags),
    "bucket": bucket,
    "queue": queue,
    "event rule": rule,
    "IAM role": role,
    "IAM policy": policy,
    "instance profile": profile,
    "EKS cluster": cluster,
}


@pytest.mark.parametrize("kind", EACH)
def test_each_kind_that_is_left_is_named_with_the_command_that_removes_it(kind):
    name = EACH[kind](OWN)
    (one,) = found()
    assert (one.kind, one.id) == (kind, name)
    assert one.remove.startswith("aws ")
    assert name in one.remove
    assert one.remove.endswith("--region us-east-1")


@pytest.mark.parametrize("tags", [NAMESAKE, NEIGHBOUR], ids=["another project's", "another stack's"])
def test_nothing_of_a_neighbours_is_listed_whatever_its_name_begins_with(tags):
    for make in EACH.values():
        make(tags)
    assert found() == []


def test_a_placement_group_is_found_by_its_tags(monkeypatch):
    group = {"GroupName": "topolab-dev-gpu-node", "State": "available", "Tags": tag_list(OWN)}
    other = {"GroupName": "other", "State": "available", "Tags": tag_list(NEIGHBOUR)}
    monkeypatch.setattr(EC2Response, "describe_placement_groups", scene.placement_groups([group, other]), raising=False)
    assert kinds() == {"placement group": "topolab-dev-gpu-node"}


def test_a_reservation_costs_as_its_instances_do_until_it_is_cancelled(monkeypatch):
    def reservation(name: str, state: str, tags: Tags) -> dict[str, Any]:
        facts = {"InstanceType": "g6e.8xlarge", "TotalInstanceCount": 2, "Tags": tag_list(tags)}
        return {"CapacityReservationId": name, "State": state, **facts}

    standing = [reservation("cr-1", "active", OWN), reservation("cr-2", "cancelled", OWN)]
    theirs = reservation("cr-3", "active", NEIGHBOUR)
    answer = scene.capacity_reservations([*standing, theirs])
    monkeypatch.setattr(EC2Response, "describe_capacity_reservations", answer, raising=False)
    (one,) = found()
    assert (one.kind, one.id, one.usd_per_hour, one.sweepable) == ("capacity reservation", "cr-1", 9.05712, False)
    assert one.remove == "aws ec2 cancel-capacity-reservation --capacity-reservation-id cr-1 --region us-east-1"


def test_a_node_says_its_type_and_its_price_and_may_be_swept():
    node = scene.instance(scene.subnet(scene.vpc({}), {}), {**KARPENTER, **OWN})
    (one,) = found()
    assert (one.id, one.state, one.usd_per_hour, one.sweepable) == (node, "g6e.8xlarge, running", 4.52856, True)


def test_a_type_without_a_price_has_none():
    scene.instance(scene.subnet(scene.vpc({}), {}), OWN, kind="t3.micro")
    assert found()[0].usd_per_hour is None


def test_what_bears_the_clusters_tag_alone_is_listed_and_what_karpenter_made_is_sweepable():
    inside = scene.subnet(scene.vpc({}), {})
    system = scene.instance(inside, {"kubernetes.io/cluster/topolab-dev": "owned"})
    scene.launch_template("karpenter", KARPENTER)
    left = {one.id: one.sweepable for one in found() if one.kind == "instance"}
    assert left == {system: False}
    assert [one.sweepable for one in found() if one.kind == "launch template"] == [True]


def test_a_claims_volume_is_named_as_such_and_never_swept():
    claims = {
        "kubernetes.io/cluster/topolab-dev": "owned",
        "kubernetes.io/created-for/pvc/name": "prometheus-0",
    }
    scene.volume(claims)
    (one,) = found()
    assert one.state == "available, of claim prometheus-0, may hold data"
    assert not one.sweepable


def test_a_terminated_instance_is_gone():
    node = scene.instance(scene.subnet(scene.vpc({}), {}), OWN)
    ec2().terminate_instances(InstanceIds=[node])
    assert found() == []


def test_interfaces_of_the_cni_are_listed_with_what_they_hang_on():
    inside = scene.subnet(scene.vpc())
    holder = scene.instance(inside, {})
    free, held = scene.interface(inside, CNI), scene.interface(inside, CNI, on=holder)
    left = {one.id: (one.state, one.sweepable) for one in found() if one.kind == "network interface"}
    assert left == {free: ("available", True), held: (f"in-use by {holder}", False)}


def test_node_groups_are_listed_before_their_cluster():
    cluster(OWN)
    aws().client("eks").create_nodegroup(
        clusterName="topolab-dev", nodegroupName="system", subnets=[], nodeRole=f"arn:aws:iam::{ACCOUNT}:role/r"
    )
    left = [(one.kind, one.id) for one in found() if "topolab-dev" in one.id]
    assert left == [("node group", "topolab-dev/system"), ("EKS cluster", "topolab-dev")]


def test_under_another_projects_cluster_of_the_same_name_only_our_tags_count():
    cluster(NAMESAKE)
    inside = scene.subnet(scene.vpc({}), {})
    scene.instance(inside, KARPENTER)
    ours = scene.volume(OWN)
    aws().client("logs").create_log_group(logGroupName="/aws/eks/topolab-dev/cluster")
    assert kinds() == {"volume": ours}


def test_the_control_planes_log_group_is_found_though_it_bears_no_tag():
    for name in ("/aws/eks/topolab-dev/cluster", "/aws/eks/topolab-dev/cluster-2"):
        aws().client("logs").create_log_group(logGroupName=name)
    assert kinds() == {"log group": "/aws/eks/topolab-dev/cluster"}


def test_a_backup_of_a_file_system_is_found_by_the_tags_that_it_copied():
    system = scene.file_system(scene.subnet(scene.vpc({}), {}), OWN)
    fsx = aws().client("fsx")
    backup = fsx.create_backup(FileSystemId=system, Tags=tag_list(OWN))["Backup"]["BackupId"]
    assert kinds()["backup of a file system"] == backup


@pytest.mark.parametrize(
    "tags",
    [OWN, {"kubernetes.io/cluster/topolab-dev": "owned"}, {"elbv2.k8s.aws/cluster": "topolab-dev"}],
)
def test_a_load_balancer_of_a_service_is_found_by_the_tag_index(tags):
    inside = scene.vpc({})
    places = [scene.subnet(inside, {})]
    made = aws().client("elbv2").create_load_balancer(Name="a", Subnets=places, Type="network", Tags=tag_list(tags))
    arn = made["LoadBalancers"][0]["LoadBalancerArn"]
    left = [one for one in found() if one.kind == "load balancer"]
    assert [one.id for one in left] == [arn]
    assert left[0].remove == f"aws elbv2 delete-load-balancer --load-balancer-arn {arn} --region us-east-1"


def test_a_kind_that_nobody_thought_of_is_found_by_the_tag_index():
    aws().client("sns").create_topic(Name="t", Tags=tag_list(OWN))
    aws().client("sns").create_topic(Name="u", Tags=tag_list(NAMESAKE))
    (one,) = found()
    assert one.id == f"arn:aws:sns:us-east-1:{ACCOUNT}:t"
    assert "the console of sns" in one.remove


def test_the_tag_index_is_read_to_its_last_page():
    for number in range(60):
        aws().client("sns").create_topic(Name=f"t{number}", Tags=tag_list(OWN))
    assert len(found()) == 60


def test_what_is_kept_by_choice_is_listed_apart_and_proves_no_fault():
    kept = {**OWN, **KEPT}
    inside = scene.vpc(kept)
    place = scene.subnet(inside, kept)
    group = scene.security_group("lustre", inside, kept)
    system = scene.file_system(place, kept)
    scene.bucket("topolab-dev-7f3a", kept)
    inventory = find(aws(), OWNER)
    assert inventory.is_destroyed
    assert {(one.kind, one.id): one.reason for one in inventory.kept} == {
        ("bucket", "topolab-dev-7f3a"): "run records",
        ("file system", system): "storage.keep",
        ("VPC", inside): "the kept file system stands in it",
        ("subnet", place): "the kept file system stands in it",
        ("security group", group): "the kept file system stands in it",
    }


def test_a_network_that_was_kept_for_a_file_system_that_is_gone_is_left():
    scene.vpc({**OWN, **KEPT})
    inventory = find(aws(), OWNER)
    assert [one.kind for one in inventory.left] == ["VPC"]


def test_an_instance_that_says_it_is_kept_is_left_all_the_same():
    scene.instance(scene.subnet(scene.vpc({}), {}), {**OWN, **KEPT})
    assert [one.kind for one in found()] == ["instance"]


DENIED = {
    "instances": ("ec2", "DescribeInstances", "UnauthorizedOperation"),
    "EKS clusters": ("eks", "DescribeCluster", "AccessDeniedException"),
    "IAM roles": ("iam", "GetAccountAuthorizationDetails", "AccessDenied"),
    "buckets": ("s3", "ListBuckets", "AccessDenied"),
    "the tag index": ("resourcegroupstaggingapi", "GetResources", "AccessDeniedException"),
}


@pytest.mark.parametrize("question", DENIED)
def test_a_question_that_may_not_be_asked_leaves_the_outcome_unproven(question, refuse):
    service, operation, code = DENIED[question]
    refuse(service, operation, code)
    inventory = find(aws(), OWNER)
    assert inventory.left == []
    assert not inventory.is_destroyed
    assert inventory.unproven == [f"{question}: these credentials may not call {operation} ({code}); allow it"]


def test_one_unanswered_question_hides_no_other_answer(refuse):
    refuse("ec2", "DescribeInstances", "UnauthorizedOperation")
    vpc = scene.vpc()
    inventory = find(aws(), OWNER)
    assert [one.id for one in inventory.left] == [vpc]


def test_every_finder_has_a_test_of_what_it_finds():
    asked = {f"{kind}s" for kind in EACH} | {"placement groups", "capacity reservations", "log groups", "the tag index"}
    assert set(FINDERS) == {name.replace("policys", "policies") for name in asked}
