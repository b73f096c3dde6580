"""Down, when Karpenter and the CNI left something, and when the cluster doesn't answer any more.

The guards run where Pulumi runs them: in its dynamic provider, from the checkout, with inputs from the state.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import boto3
import pytest

from tests.e2e.cloud.leftovers import leave_interface, leave_node
from tests.e2e.engine.running import Outcome
from tests.e2e.listing import Listing, look
from tests.e2e.operations import Operation, position
from tests.e2e.site import ACCOUNT, REGION

pytestmark = pytest.mark.e2e

STACK = "dev"
CLUSTER = "topolab-dev"


@dataclass(kw_only=True)
class Left:
    """What was put into the account behind Pulumi's back."""

    instance: str
    template: str
    interface: str


@dataclass(kw_only=True)
class Story:
    """A destroy that a protected node stops, and the one after it."""

    left: Left
    stopped: Outcome
    looked: Listing
    ended: Outcome
    looked_again: Listing
    inventory: Mapping[str, list[str]]
    operations: list[Operation]


@pytest.fixture(scope="module")
def story(standing, module_workspace) -> Story:
    user = module_workspace
    user.init(STACK)
    user.up(STACK).must_succeed()
    left = leave(standing, user)
    ec2 = client(standing, "ec2")
    ec2.modify_instance_attribute(InstanceId=left.instance, DisableApiTermination={"Value": True})
    stopped = user.destroy(STACK)
    looked = look(user, STACK)
    ec2.modify_instance_attribute(InstanceId=left.instance, DisableApiTermination={"Value": False})
    ended = user.destroy(STACK)
    return Story(
        left=left,
        stopped=stopped,
        looked=looked,
        ended=ended,
        looked_again=look(user, STACK),
        inventory=standing.inventory(),
        operations=standing.operations(),
    )


def client(standing, service: str) -> Any:
    make: Any = boto3.client
    return make(
        service,
        region_name=REGION,
        endpoint_url=standing.site.aws_endpoint,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


def leave(standing, user) -> Left:
    """A node that no NodeClaim owns, with its template, and an interface that the CNI forgot."""
    ec2 = client(standing, "ec2")
    (subnet,) = [one["id"] for one in user.resources(STACK) if one["urn"].endswith("Subnet::gpu-private")]
    group = client(standing, "eks").describe_cluster(name=CLUSTER)["cluster"]["resourcesVpcConfig"][
        "clusterSecurityGroupId"
    ]
    node = leave_node(
        ec2,
        cluster=CLUSTER,
        node_pool="gpu-g6e8xl",
        subnet_id=subnet,
        group_ids=[group],
        instance_profile=f"{CLUSTER}-gpu-node",
    )
    interface = leave_interface(ec2, cluster=CLUSTER, subnet_id=subnet, group_ids=[group], instance_id=node.instance_id)
    return Left(instance=node.instance_id, template=node.launch_template_id, interface=interface)


def test_a_node_that_cannot_be_ended_stops_the_destroy_with_a_sentence_that_names_it(story):
    assert story.stopped.returncode != 0
    output = " ".join(story.stopped.output.split())
    named = rf"instances are left after \d+ s and cost money: {story.left.instance} \(g6e.8xlarge, running\)"
    assert re.search(named, output), story.stopped.tail()
    assert f"aws ec2 terminate-instances --region {REGION} --instance-ids {story.left.instance}" in output
    assert "teardown.py" not in story.stopped.output, "a sentence, no traceback"


def test_then_karpenter_the_cluster_and_its_network_are_still_there(story):
    until = [index for index, one in enumerate(story.operations) if one.who == "engine" and one.verb == "destroy"][1]
    done = {one.verb for one in story.operations[:until] if one.outcome == "ok"}
    assert not {"DeleteNodegroup", "DeleteCluster", "DeleteSubnet"} & done
    assert position(story.operations, who="helm", verb="uninstall", subject=karpenter(story)) > until


def karpenter(story: Story) -> str:
    return next(one.subject for one in story.operations if one.who == "helm" and one.subject.endswith("/karpenter"))


def test_and_the_account_names_every_leftover_with_its_command(story):
    assert story.looked.code == 1
    assert story.left.instance in story.looked.left("instance")
    assert story.left.template in story.looked.left("launch template")
    assert story.looked.left("network interface") == [story.left.interface]
    assert story.looked.left("EKS cluster") == [CLUSTER]
    assert story.looked.document["unproven"] == []
    assert all(one["remove"] for one in story.looked.document["left"])


def test_once_it_can_be_ended_the_destroy_sweeps_node_template_and_interface_and_says_so(story):
    story.ended.must_succeed()
    for verb, name in (
        ("TerminateInstances", story.left.instance),
        ("DeleteLaunchTemplate", story.left.template),
        ("DeleteNetworkInterface", story.left.interface),
    ):
        assert any(one.verb == verb and name in one.subject for one in story.operations), verb
    assert f"terminating {story.left.instance}" in story.ended.output
    assert f"deleting interface {story.left.interface}" in story.ended.output


def test_nodes_are_swept_while_the_controller_lives_and_interfaces_between_cluster_and_subnets(story):
    def at(who: Any, verb: str, subject: str | None = None) -> int:
        return position(story.operations, who=who, verb=verb, subject=subject)

    assert at("aws", "TerminateInstances") < at("helm", "uninstall", karpenter(story))
    assert at("aws", "DeleteCluster") < at("aws", "DeleteNetworkInterface") < at("aws", "DeleteSubnet")


def test_afterwards_nothing_is_left_but_the_records_and_the_account_says_so(story):
    assert set(story.inventory) == {"s3:bucket"}
    assert story.looked_again.code == 0
    assert story.looked_again.document["left"] == story.looked_again.document["unproven"] == []
    assert story.looked_again.document["account"] == ACCOUNT
    kept = [(one["kind"], one["id"]) for one in story.looked_again.document["kept"]]
    assert kept == [("bucket", story.inventory["s3:bucket"][0])]


def test_a_cluster_that_does_not_answer_is_given_up_by_the_documented_command(standing, workspace):
    workspace.init(STACK)
    workspace.up(STACK).must_succeed()
    left = leave(standing, workspace)
    standing.cluster.stop_api_server()
    refused = workspace.destroy(STACK)
    assert refused.returncode != 0
    assert "PULUMI_K8S_DELETE_UNREACHABLE" in refused.output
    given_up = workspace.pulumi(
        "destroy", "--refresh", "--stack", STACK, "--yes", variables={"PULUMI_K8S_DELETE_UNREACHABLE": "true"}
    )
    given_up.must_succeed()
    assert f"cluster {CLUSTER} doesn't answer" in given_up.output
    assert f"terminating {left.instance}" in given_up.output
    assert standing.left() == {}
    assert look(workspace, STACK).code == 0
