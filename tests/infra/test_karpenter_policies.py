"""Karpenter's rights: every statement that upstream lists, scoped to one cluster."""

import json
from collections import Counter
from typing import Any

import pytest

from infra.iam import POD_IDENTITY_TRUST, Policy
from infra.interruptions import INTERRUPTION_EVENTS, queue_policy
from infra.karpenter_policies import Scope, controller_policies

SCOPE = Scope(
    partition="aws", region="us-east-1", account="123456789012", cluster="topolab-dev", node_role="nodes", queue="q"
)
POLICIES = controller_policies(SCOPE)


def read(policy: Policy) -> list[dict[str, Any]]:
    """Statements as AWS reads them."""
    found: list[dict[str, Any]] = json.loads(json.dumps(policy))["Statement"]
    return found


STATEMENTS = {s["Sid"]: s for p in POLICIES.values() for s in read(p)}

SIDS = {
    "node-lifecycle": [
        "AllowScopedEC2InstanceAccessActions", "AllowScopedEC2LaunchTemplateAccessActions",
        "AllowScopedEC2InstanceActionsWithTags", "AllowScopedResourceCreationTagging", "AllowScopedResourceTagging",
        "AllowScopedDeletion",
    ],
    "iam-integration": [
        "AllowPassingInstanceRole", "AllowScopedInstanceProfileCreationActions", "AllowScopedInstanceProfileTagActions",
        "AllowScopedInstanceProfileActions",
    ],
    "eks-integration": ["AllowAPIServerEndpointDiscovery"],
    "interruption": ["AllowInterruptionQueueActions"],
    "resource-discovery": [
        "AllowRegionalReadActions", "AllowSSMReadActions", "AllowPricingReadActions",
        "AllowUnscopedInstanceProfileListAction", "AllowInstanceProfileReadActions",
    ],
}  # fmt: skip


def test_the_five_policies_hold_exactly_these_statements():
    assert {part: [s["Sid"] for s in read(p)] for part, p in POLICIES.items()} == SIDS


@pytest.mark.parametrize("part", SIDS)
def test_each_policy_fits_a_managed_policy(part):
    assert len(json.dumps(POLICIES[part], separators=(",", ":"))) <= 6144


def test_launches_may_use_placement_groups_and_reservations():
    resources = STATEMENTS["AllowScopedEC2InstanceAccessActions"]["Resource"]
    assert "arn:aws:ec2:us-east-1:*:placement-group/*" in resources
    assert "arn:aws:ec2:us-east-1:*:capacity-reservation/*" in resources
    assert "arn:aws:ec2:us-east-1::image/*" in resources
    assert "arn:aws:ec2:us-east-1::snapshot/*" in resources


@pytest.mark.parametrize(
    "action",
    ["ec2:DescribePlacementGroups", "ec2:DescribeInstanceStatus", "ec2:DescribeCapacityReservations"],
)
def test_discovery_reads_what_versions_since_1_11_ask_for(action):
    assert action in STATEMENTS["AllowRegionalReadActions"]["Action"]
    assert STATEMENTS["AllowRegionalReadActions"]["Condition"] == {"StringEquals": {"aws:RequestedRegion": "us-east-1"}}


def test_profiles_can_be_listed_or_a_node_class_never_ends():
    assert STATEMENTS["AllowUnscopedInstanceProfileListAction"]["Action"] == ["iam:ListInstanceProfiles"]


def test_only_instances_of_this_cluster_and_of_a_pool_can_be_ended():
    condition = STATEMENTS["AllowScopedDeletion"]["Condition"]
    assert condition == {
        "StringEquals": {"aws:ResourceTag/kubernetes.io/cluster/topolab-dev": "owned"},
        "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"},
    }


def test_what_is_launched_must_be_tagged_as_this_clusters():
    for sid in ("AllowScopedEC2InstanceActionsWithTags", "AllowScopedResourceCreationTagging"):
        equals = STATEMENTS[sid]["Condition"]["StringEquals"]
        assert equals["aws:RequestTag/kubernetes.io/cluster/topolab-dev"] == "owned"
        assert equals["aws:RequestTag/eks:eks-cluster-name"] == "topolab-dev"


def test_tags_of_running_instances_change_in_three_keys_alone():
    condition = STATEMENTS["AllowScopedResourceTagging"]["Condition"]
    assert condition["ForAllValues:StringEquals"] == {
        "aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]
    }
    assert condition["StringEqualsIfExists"] == {"aws:RequestTag/eks:eks-cluster-name": "topolab-dev"}


def test_one_role_can_be_passed_and_to_ec2_alone():
    passing = STATEMENTS["AllowPassingInstanceRole"]
    assert passing["Resource"] == ["arn:aws:iam::123456789012:role/nodes"]
    assert passing["Condition"]["StringEquals"]["iam:PassedToService"] == ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]


def test_profile_tags_are_checked_on_both_sides():
    condition = STATEMENTS["AllowScopedInstanceProfileTagActions"]["Condition"]
    sides = Counter(key.split("/")[0] for key in condition["StringEquals"])
    assert sides == {"aws:ResourceTag": 2, "aws:RequestTag": 3}


def test_a_star_stands_only_where_aws_knows_no_resource():
    open_ended = {sid for sid, s in STATEMENTS.items() if "*" in s["Resource"]}
    assert open_ended == {
        "AllowRegionalReadActions", "AllowPricingReadActions", "AllowUnscopedInstanceProfileListAction"
    }  # fmt: skip


def test_the_queue_takes_events_and_refuses_plain_http():
    allowed, denied = read(queue_policy("arn:q"))
    assert allowed["Principal"] == {"Service": ["events.amazonaws.com", "sqs.amazonaws.com"]}
    assert (denied["Sid"], denied["Effect"]) == ("DenyHTTP", "Deny")
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_every_event_that_ends_a_node_reaches_the_queue():
    assert sorted(p["detail-type"][0] for p in INTERRUPTION_EVENTS.values()) == [
        "AWS Health Event",
        "EC2 Capacity Reservation Instance Interruption Warning",
        "EC2 Instance Rebalance Recommendation",
        "EC2 Instance State-change Notification",
        "EC2 Spot Instance Interruption Warning",
    ]


def test_pod_identity_tags_its_sessions():
    (statement,) = read(POD_IDENTITY_TRUST)
    assert statement["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert statement["Action"] == ["sts:AssumeRole", "sts:TagSession"]
