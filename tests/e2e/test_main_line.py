"""The main line, as the README tells it: preview, up, up again, another attempt, another link, destroy.

One story is played once on the real engine, with the real Karpenter, Trainer and JobSet; each test reads one
chapter of it. `pulumi up` ends when the TrainJob is accepted, so its pods are waited for here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.e2e.children import wait_until
from tests.e2e.engine.events import kind_of, name_of
from tests.e2e.engine.running import Outcome
from tests.e2e.operations import Operation, position
from tests.e2e.standing import HELMS, Standing
from workloads.planning.plan import NAMESPACE
from workloads.rendering.names import TOPOLOGY_LABEL

pytestmark = pytest.mark.e2e

STACK = "g6e12xl-4x4-efa1"
OTHER = "g6e12xl-4x4-tcp"
"""Of the same instance type: its nodes stay."""

_NODES_S = 120.0
"""Karpenter's kwok form takes 30 s from launch to Ready, by its own source."""
_OF_THE_TOPOLOGY = {"ClusterTrainingRuntime", "ConfigMap", "TrainJob"}


@dataclass(kw_only=True)
class Story:
    """What each command did, and what stood there after it."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    jobs: dict[str, list[str]] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    after_preview: Mapping[str, list[str]] = field(default_factory=dict)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    pods: list[dict[str, Any]] = field(default_factory=list)
    nodes_of_the_other: list[str] = field(default_factory=list)
    left: Mapping[str, list[str]] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)


@pytest.fixture(scope="module")
def story(standing, module_workspace) -> Story:
    told, user = Story(), module_workspace
    user.init(STACK)
    told.outcomes["preview"] = user.preview(STACK).must_succeed()
    told.after_preview = standing.inventory()
    told.outcomes["up"] = user.up(STACK).must_succeed()
    told.outputs = user.outputs(STACK)
    told.jobs["up"] = job_names(standing)
    wait_until(lambda: started(standing, STACK) == 4, _NODES_S, "four pods run on nodes that Karpenter made")
    told.nodes, told.pods = gpu_nodes(standing), pods(standing, STACK)
    told.outcomes["again"] = user.up(STACK).must_succeed()
    user.set(STACK, "topolab:run.attempt", "2")
    told.outcomes["attempt"] = user.up(STACK).must_succeed()
    told.jobs["attempt"] = job_names(standing)
    user.set(STACK, "topolab:topology", OTHER)
    # The slow link costs more than the file's budget allows, and `pulumi up` says so.
    told.outcomes["too dear"] = user.up(STACK)
    user.set(STACK, "topolab:platform.budgetUsd", "200")
    told.outcomes["topology"] = user.up(STACK).must_succeed()
    told.jobs["topology"] = job_names(standing)
    wait_until(lambda: started(standing, OTHER) == 4, _NODES_S, "four pods of the other topology run")
    told.nodes_of_the_other = [node["metadata"]["name"] for node in gpu_nodes(standing)]
    told.outcomes["destroy"] = user.destroy(STACK).must_succeed()
    told.left = standing.inventory()
    told.operations = standing.operations()
    return told


def job_names(standing: Standing) -> list[str]:
    found = standing.api.items(f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{NAMESPACE}/trainjobs")
    return [job["metadata"]["name"] for job in found]


def pods(standing: Standing, topology: str) -> list[dict[str, Any]]:
    return standing.api.items(f"/api/v1/namespaces/{NAMESPACE}/pods", labelSelector=f"{TOPOLOGY_LABEL}={topology}")


def started(standing: Standing, topology: str) -> int:
    """Pods on nodes; those of a Job end by themselves there."""
    return sum(pod["status"].get("phase") in {"Running", "Succeeded"} for pod in pods(standing, topology))


def gpu_nodes(standing: Standing) -> list[dict[str, Any]]:
    return standing.api.items("/api/v1/nodes", labelSelector="karpenter.sh/nodepool")


def test_a_preview_makes_nothing(story):
    assert story.after_preview == {}
    assert story.outcomes["preview"].changes.created


def test_a_preview_announces_what_the_up_makes(story):
    assert set(story.outcomes["preview"].changes.created) == set(story.outcomes["up"].changes.created)


def test_a_second_up_changes_nothing(story):
    assert story.outcomes["again"].changes.is_none, story.outcomes["again"].changes.summary()


def test_the_job_of_the_stack_is_accepted_and_named_in_the_outputs(story):
    assert story.jobs["up"] == [story.outputs["trainJob"]]
    assert story.outputs["namespace"] == NAMESPACE
    assert story.outputs["records"].startswith("s3://")
    assert "topo collect" in story.outputs["next"]


def test_its_pods_run_on_four_nodes_of_the_type_zone_and_devices_that_the_topology_names(story):
    assert len({pod["spec"]["nodeName"] for pod in story.pods}) == len(story.nodes) == 4
    for node in story.nodes:
        labels, capacity = node["metadata"]["labels"], node["status"]["capacity"]
        assert labels["node.kubernetes.io/instance-type"] == "g6e.12xlarge"
        assert labels["topology.kubernetes.io/zone"] == "us-east-1b"
        assert (capacity["nvidia.com/gpu"], capacity["vpc.amazonaws.com/efa"]) == ("4", "1")


def test_another_attempt_is_another_job_and_nothing_else(story):
    changes = story.outcomes["attempt"].changes
    assert len(story.jobs["attempt"]) == 1
    assert story.jobs["attempt"] != story.jobs["up"]
    assert {kind_of(urn).rsplit(":", 1)[-1] for urn in changes.replaced} == {"TrainJob"}
    assert {kind_of(urn).rsplit(":", 1)[-1] for urn in (*changes.created, *changes.updated)} <= {"ConfigMap"}


def test_a_link_that_costs_more_than_the_budget_is_refused_before_anything_changes(story):
    outcome = story.outcomes["too dear"]
    assert outcome.returncode != 0
    assert "platform.budgetUsd = 55.0: the run may cost up to" in outcome.output
    assert outcome.changes.is_none or not outcome.changes.created


def test_another_topology_of_the_type_replaces_only_what_the_topology_owns(story):
    changes = story.outcomes["topology"].changes
    touched = [*changes.created, *changes.updated, *changes.replaced, *changes.deleted]
    assert {kind_of(urn).rsplit(":", 1)[-1] for urn in touched} <= _OF_THE_TOPOLOGY, list(map(name_of, touched))


def test_and_its_nodes_stay_warm(story):
    assert story.nodes_of_the_other == [node["metadata"]["name"] for node in story.nodes]


def test_destroy_leaves_nothing_in_the_account_but_the_records(story):
    assert set(story.left) == {"s3:bucket"}
    assert [f"s3://{bucket}" for bucket in story.left["s3:bucket"]] == [story.outputs["records"]]


def test_the_cluster_held_nothing_of_ours_when_it_went(story):
    census = story.operations[position(story.operations, who="cluster", verb="census")]
    # On EKS these end with the cluster.
    assert census.details["objects"] == sorted(HELMS)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (("kubernetes", "deleted", "TrainJob"), ("helm", "uninstall", "kubeflow-system/kubeflow-trainer")),
        (("helm", "uninstall", "kubeflow-system/kubeflow-trainer"), ("kubernetes", "deleted", "NodePool")),
        (("kubernetes", "deleted", "NodePool"), ("kubernetes", "deleted", "EC2NodeClass")),
        (("kubernetes", "deleted", "EC2NodeClass"), ("helm", "uninstall", "kube-system/karpenter")),
        (("helm", "uninstall", "kube-system/karpenter"), ("helm", "uninstall", "kube-system/karpenter-crd")),
        (("helm", "uninstall", "kube-system/karpenter-crd"), ("aws", "DeleteNodegroup", "")),
        (("aws", "DeleteNodegroup", ""), ("aws", "DeleteCluster", "")),
        (("aws", "DeleteCluster", ""), ("aws", "DeleteNatGateway", "")),
        (("aws", "DeleteCluster", ""), ("aws", "DeleteSubnet", "")),
        (("aws", "DeleteSubnet", ""), ("aws", "DeleteVpc", "")),
    ],
    ids=lambda one: f"{one[1]} {one[2]}".strip(),
)
def test_destroy_goes_in_order(story, first, later):
    assert last(story, first) < last(story, later)


def last(story: Story, wanted: tuple[str, str, str]) -> int:
    who, verb, subject = wanted
    found = [
        index
        for index, one in enumerate(story.operations)
        if (one.who, one.verb, one.outcome) == (who, verb, "ok")
        and (subject == one.subject or one.subject.startswith(f"{subject}/") or not subject)
    ]
    assert found, f"no operation {who} {verb} of {subject}"
    return found[-1]
