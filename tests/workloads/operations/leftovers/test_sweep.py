"""What the guards and `--sweep` remove, what they wait for, and what they never touch."""

import pytest

from tests.workloads.operations.leftovers import scene
from tests.workloads.operations.leftovers.scene import CNI, KARPENTER, NAMESAKE, OF_NEIGHBOUR, OWN, OWNER, aws
from workloads.operations.leftovers import karpenters
from workloads.operations.leftovers.aws import RefusedError
from workloads.operations.leftovers.ownership import CNI_INSTANCE_KEY, Owner
from workloads.operations.leftovers.sweep import LeftoverError, end_nodes, end_orphans, free_interfaces, sweep


@pytest.fixture
def vpc() -> str:
    return scene.vpc()


@pytest.fixture
def subnet(vpc) -> str:
    return scene.subnet(vpc)


def volumes() -> set[str]:
    return {one["VolumeId"] for one in aws().client("ec2").describe_volumes()["Volumes"]}


def templates() -> set[str]:
    return {one["LaunchTemplateName"] for one in aws().client("ec2").describe_launch_templates()["LaunchTemplates"]}


def groups(vpc: str) -> set[str]:
    inside = [{"Name": "vpc-id", "Values": [vpc]}]
    return {one["GroupName"] for one in aws().client("ec2").describe_security_groups(Filters=inside)["SecurityGroups"]}


def test_a_clean_account_is_left_in_silence(clock, vpc):
    end_nodes(aws(), OWNER, clock.patience())
    free_interfaces(aws(), OWNER, vpc, clock.patience())
    assert clock.lines == []
    assert clock.seconds == 0


def test_karpenters_instances_are_ended_and_each_is_named(clock, subnet):
    tagged = [scene.instance(subnet, {**KARPENTER, **OWN}), scene.instance(subnet, KARPENTER, kind="p4d.24xlarge")]
    end_nodes(aws(), OWNER, clock.patience())
    assert scene.instance_states(*tagged) == ["terminated", "terminated"]
    assert clock.lines[0].startswith(f"terminating {tagged[0]} (g6e.8xlarge, running)")
    assert any(f"terminating {tagged[1]} (p4d.24xlarge, running)" in line for line in clock.lines)


OTHERS = {
    "another cluster's node": OF_NEIGHBOUR,
    "a cluster's node whose name only begins alike": {**KARPENTER, "kubernetes.io/cluster/topolab-dev": "shared"},
    "a system node, which Karpenter didn't make": {"kubernetes.io/cluster/topolab-dev": "owned"},
    "a node of Karpenter's without a cluster": {"karpenter.sh/nodepool": "gpu-g6e8xl"},
    "another project's node in a cluster of the same name": {**KARPENTER, **NAMESAKE},
    "another stack's node": {**KARPENTER, "topolab:stack": "dev-2"},
    "the stack's own instance": OWN,
    "nobody's": {},
}


@pytest.mark.parametrize("case", OTHERS)
def test_in_a_shared_account_it_leaves(case, clock, subnet):
    other, ours = scene.instance(subnet, OTHERS[case]), scene.instance(subnet, KARPENTER)
    template = scene.launch_template("theirs", OTHERS[case])
    kept_volume = scene.volume(OTHERS[case])
    sweep(aws(), OWNER, clock.patience())
    assert scene.instance_states(other, ours) == ["running", "terminated"]
    assert templates() == {"theirs"}, template
    assert kept_volume in volumes()


def test_what_ec2_filters_too_generously_is_still_told_apart(clock, subnet, monkeypatch):
    other = scene.instance(subnet, OF_NEIGHBOUR)
    monkeypatch.setattr(karpenters, "_owned", lambda _owner: [])
    end_nodes(aws(), OWNER, clock.patience())
    assert scene.instance_states(other) == ["running"]


def test_templates_and_detached_volumes_go_with_the_nodes(clock, subnet):
    scene.launch_template("karpenter.k8s.aws/1", KARPENTER)
    scene.launch_template("somebody's", {})
    gone, claims = scene.volume(KARPENTER), scene.volume({"kubernetes.io/cluster/topolab-dev": "owned"})
    attached = scene.volume(KARPENTER)
    holder = scene.instance(subnet, {})
    aws().client("ec2").attach_volume(VolumeId=attached, InstanceId=holder, Device="/dev/sdf")
    end_nodes(aws(), OWNER, clock.patience())
    assert templates() == {"somebody's"}
    assert gone not in volumes()
    assert {claims, attached} <= volumes(), "a claim's volume holds data; an attached one is in use"
    assert "deleting launch template karpenter.k8s.aws/1" in clock.lines


def test_profiles_under_karpenters_path_go_and_no_others(clock):
    scene.instance_profile("made", path="/karpenter/us-east-1/topolab-dev/uid/", tags={})
    scene.instance_profile("neighbours", path="/karpenter/us-east-1/topolab-dev-2/uid/", tags={})
    scene.instance_profile("namesakes", path="/karpenter/us-east-1/topolab-dev/other/", tags=NAMESAKE)
    scene.instance_profile("topolab-dev-gpu-node")
    end_nodes(aws(), OWNER, clock.patience())
    left = {one["InstanceProfileName"] for one in aws().client("iam").list_instance_profiles()["InstanceProfiles"]}
    assert left == {"neighbours", "namesakes", "topolab-dev-gpu-node"}
    assert [role["RoleName"] for role in aws().client("iam").list_roles()["Roles"] if role["RoleName"] == "made-role"]


def test_instances_of_every_page_are_ended(clock, subnet, monkeypatch):
    names = [scene.instance(subnet, KARPENTER) for _ in range(7)]
    paginator = aws().client("ec2").get_paginator
    monkeypatch.setattr(aws().client("ec2"), "get_paginator", lambda operation: _small(paginator(operation)))
    end_nodes(aws(), OWNER, clock.patience())
    assert set(scene.instance_states(*names)) == {"terminated"}


def _small(paginator):
    ask = paginator.paginate
    paginator.paginate = lambda **arguments: ask(**arguments, PaginationConfig={"PageSize": 5})
    return paginator


def test_an_instance_that_never_ends_stops_the_destroy_with_a_sentence_at_the_limit(clock, subnet, monkeypatch):
    name = scene.instance(subnet, KARPENTER)
    monkeypatch.setattr(aws().client("ec2"), "terminate_instances", lambda **_: None)
    with pytest.raises(LeftoverError) as stopped:
        end_nodes(aws(), OWNER, clock.patience(limit_s=300))
    assert str(stopped.value) == (
        f"instances are left after 300 s and cost money: {name} (g6e.8xlarge, running); end them with "
        f"`aws ec2 terminate-instances --region us-east-1 --instance-ids {name}`, then `pulumi destroy` again"
    )
    assert clock.seconds == 300
    waits = [line for line in clock.lines if line.startswith("waiting for instances to end")]
    assert len(waits) == 5, "once a minute, no more"


def test_a_slow_end_is_waited_for(clock, subnet, monkeypatch):
    name = scene.instance(subnet, KARPENTER)
    end = aws().client("ec2").terminate_instances
    monkeypatch.setattr(
        aws().client("ec2"), "terminate_instances", lambda **asked: clock.seconds >= 90 and end(**asked)
    )
    end_nodes(aws(), OWNER, clock.patience())
    assert scene.instance_states(name) == ["terminated"]
    assert 90 <= clock.seconds <= 100


def test_a_node_that_a_living_controller_launches_meanwhile_is_ended_too(clock, subnet, monkeypatch):
    first = scene.instance(subnet, KARPENTER)
    more: list[str] = []
    end = aws().client("ec2").terminate_instances

    def relaunch(**asked):
        answer = end(**asked)
        if not more:
            more.append(scene.instance(subnet, KARPENTER))
        return answer

    monkeypatch.setattr(aws().client("ec2"), "terminate_instances", relaunch)
    end_nodes(aws(), OWNER, clock.patience())
    assert scene.instance_states(first, *more) == ["terminated", "terminated"]


def test_a_protected_instance_is_named_at_once_with_ec2s_reason_and_the_others_end(clock, subnet):
    protected, other = scene.instance(subnet, KARPENTER), scene.instance(subnet, KARPENTER)
    aws().client("ec2").modify_instance_attribute(InstanceId=protected, DisableApiTermination={"Value": True})
    with pytest.raises(LeftoverError, match=rf"{protected}: The instance '{protected}' may not be terminated"):
        end_nodes(aws(), OWNER, clock.patience())
    assert scene.instance_states(other) == ["terminated"]
    assert clock.seconds < 60


def test_detached_interfaces_of_the_cni_are_deleted_and_nobody_elses(clock, vpc, subnet):
    other_vpc = scene.vpc({})
    theirs = [
        scene.interface(subnet, {}),
        scene.interface(subnet, {"cluster.k8s.amazonaws.com/name": "another"}),
        scene.interface(subnet, {**CNI, "cluster.k8s.amazonaws.com/name": "topolab-dev-2"}),
        scene.interface(subnet, {**CNI, **NAMESAKE}),
        scene.interface(scene.subnet(other_vpc, {}), CNI),
    ]
    ours = [scene.interface(subnet, CNI), scene.interface(subnet, {"node.k8s.amazonaws.com/instance_id": "i-1"})]
    free_interfaces(aws(), OWNER, vpc, clock.patience())
    assert scene.interface_names() == set(theirs)
    assert [f"deleting interface {name}, which the CNI left" for name in ours] == clock.lines


def test_an_interface_in_use_is_waited_for_and_never_torn_off(clock, vpc, subnet):
    holder = scene.instance(subnet, {})
    held = scene.interface(subnet, CNI, on=holder)
    patience = clock.patience(limit_s=120)
    with pytest.raises(LeftoverError) as stopped:
        free_interfaces(aws(), OWNER, vpc, patience)
    assert str(stopped.value) == (
        f"interfaces hold subnets of {vpc} after 120 s: {held} (in-use by {holder}); end what they hang on, "
        "then `pulumi destroy` again"
    )
    assert held in scene.interface_names()


def test_an_interface_of_an_instance_that_ends_is_deleted_once_it_is_free(clock, vpc, subnet):
    holder = scene.instance(subnet, {})
    held = scene.interface(subnet, CNI, on=holder)
    attachment = aws().client("ec2").describe_network_interfaces(NetworkInterfaceIds=[held])
    name = attachment["NetworkInterfaces"][0]["Attachment"]["AttachmentId"]

    def sleep(seconds: float) -> None:
        clock.seconds += seconds
        if clock.seconds == 30:
            aws().client("ec2").detach_network_interface(AttachmentId=name)

    patience = clock.patience()
    patience.sleep = sleep
    free_interfaces(aws(), OWNER, vpc, patience)
    assert held not in scene.interface_names()
    assert clock.seconds == 30


def test_an_interface_that_goes_between_two_looks_is_fine(clock, vpc, subnet, refuse):
    scene.interface(subnet, CNI)
    refuse("ec2", "DeleteNetworkInterface", "InvalidNetworkInterfaceID.NotFound")
    free_interfaces(aws(), OWNER, vpc, clock.patience())


def test_the_clusters_own_security_group_goes_after_the_interfaces_that_held_it(clock, vpc):
    owned = {"kubernetes.io/cluster/topolab-dev": "owned"}
    scene.security_group("eks-cluster-sg-topolab-dev-123", vpc, owned)
    scene.security_group("eks-cluster-sg-topolab-dev-2-123", vpc, {"kubernetes.io/cluster/topolab-dev-2": "owned"})
    scene.security_group("mine", vpc, owned)
    free_interfaces(aws(), OWNER, vpc, clock.patience())
    assert groups(vpc) == {"default", "eks-cluster-sg-topolab-dev-2-123", "mine"}


def test_without_rights_it_stops_with_the_name_of_the_right(clock, refuse):
    refuse("ec2", "DescribeInstances", "UnauthorizedOperation")
    with pytest.raises(RefusedError, match="may not call DescribeInstances"):
        end_nodes(aws(), OWNER, clock.patience())


def test_an_unexpected_refusal_of_aws_is_passed_on_in_a_sentence(clock, vpc, subnet, refuse):
    scene.interface(subnet, CNI)
    refuse("ec2", "DeleteNetworkInterface", "InternalError", "try\n  later")
    with pytest.raises(RefusedError, match=r"AWS answers DeleteNetworkInterface with InternalError \(try later\)"):
        free_interfaces(aws(), OWNER, vpc, clock.patience())


def test_nodes_of_a_cluster_that_is_there_stay_whoever_made_it_since(clock, subnet):
    node = scene.instance(subnet, KARPENTER)
    scene.cluster(subnet)
    end_orphans(aws(), OWNER, clock.patience())
    assert scene.instance_states(node) == ["running"]
    assert clock.lines == ["cluster topolab-dev is there: nodes that bear its name stay"]


def test_nodes_of_a_cluster_that_is_gone_are_ended(clock, subnet):
    node = scene.instance(subnet, KARPENTER)
    end_orphans(aws(), OWNER, clock.patience())
    assert scene.instance_states(node) == ["terminated"]


def test_a_sweep_refuses_while_the_cluster_is_there(clock, subnet):
    node = scene.instance(subnet, KARPENTER)
    scene.cluster(subnet, NAMESAKE)
    with pytest.raises(RefusedError, match="cluster topolab-dev is there, so its nodes may be in use"):
        sweep(aws(), OWNER, clock.patience())
    assert scene.instance_states(node) == ["running"]


def test_a_sweep_takes_nodes_then_interfaces_of_every_vpc_of_the_stack(clock, subnet):
    kept = scene.vpc()
    names = [scene.interface(subnet, CNI), scene.interface(scene.subnet(kept), CNI)]
    node = scene.instance(subnet, KARPENTER)
    sweep(aws(), OWNER, clock.patience())
    assert scene.instance_states(node) == ["terminated"]
    assert not scene.interface_names() & set(names)


@pytest.mark.parametrize("tags", [scene.NEIGHBOUR, scene.NAMESAKE], ids=["another stack's", "another project's"])
def test_a_whole_sweep_frees_no_interface_in_a_network_that_is_not_the_stacks(tags, clock):
    foreign = scene.interface(scene.subnet(scene.vpc(tags), tags), {CNI_INSTANCE_KEY: "i-0a1b2c"})
    sweep(aws(), OWNER, clock.patience())
    sweep(aws(), Owner(project="topolab", stack="dev*", region=OWNER.region), clock.patience())
    assert scene.interface_names() == {foreign}


def test_an_interface_of_another_cluster_in_the_stacks_network_stays(clock, vpc, subnet):
    foreign = scene.interface(subnet, {CNI_INSTANCE_KEY: "i-0a1b2c", "kubernetes.io/cluster/other": "owned"})
    free_interfaces(aws(), OWNER, vpc, clock.patience())
    assert scene.interface_names() == {foreign}
