"""Fake GPU nodes have what the catalogue says, and kwok's stages end their pods as they are told."""

import pytest
import yaml

from tests.e2e.cluster.fake_nodes import OUTCOME, fake_node, stages

STAGES = (
    "node/fast/node-initialize",
    "node/heartbeat-with-lease/node-heartbeat-with-lease",
    "pod/fast/pod-ready",
    "pod/fast/pod-delete",
    "pod/fast/pod-complete",
    "pod/chaos/pod-container-running-failed",
)
FAIL = "pod-container-running-failed.stage.kwok.x-k8s.io"


def node(instance_type, **changes):
    return fake_node(
        "n", instance_type, **({"zone": "us-east-1b", "labels": {}, "taints": [], "capacity": {}} | changes)
    )


@pytest.mark.parametrize(
    ("instance_type", "gpus", "efa"),
    [("g6e.12xlarge", "4", "1"), ("p4d.24xlarge", "8", "4"), ("p5.48xlarge", "8", "32")],
)
def test_a_node_has_the_devices_of_its_type(instance_type, gpus, efa):
    allocatable = node(instance_type)["status"]["allocatable"]
    assert (allocatable["nvidia.com/gpu"], allocatable["vpc.amazonaws.com/efa"]) == (gpus, efa)


def test_the_kubelet_keeps_a_part_of_a_node():
    status = node("g6e.12xlarge")["status"]
    assert (status["capacity"]["cpu"], status["allocatable"]["cpu"]) == ("48", "47810m")
    assert (status["capacity"]["memory"], status["allocatable"]["memory"]) == ("384Gi", "360157Mi")


def test_a_test_can_take_devices_away():
    status = node("g6e.12xlarge", capacity={"vpc.amazonaws.com/efa": "0"})["status"]
    assert status["capacity"]["vpc.amazonaws.com/efa"] == status["allocatable"]["vpc.amazonaws.com/efa"] == "0"
    assert status["allocatable"]["nvidia.com/gpu"] == "4"


def test_an_unknown_type_is_refused_with_those_that_are_known():
    with pytest.raises(
        ValueError, match=r"instance type 'm7i\.large' isn't in the catalogue; take one of g6e\.8xlarge"
    ):
        node("m7i.large")


@pytest.fixture
def kwok(tmp_path):
    """Stages as kwok ships them, as far as they matter here."""
    for name in STAGES:
        path = tmp_path / "kustomize" / "stage" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        expressions = [{"key": ".status.phase", "operator": "In", "values": ["Running"]}]
        if "chaos" in name:
            expressions.append({"key": f'.metadata.labels["{FAIL}"]', "operator": "In", "values": ["true"]})
        spec = {"selector": {"matchExpressions": expressions}, "delay": {"durationMilliseconds": 1000}}
        path.write_text(yaml.safe_dump({"metadata": {"name": path.stem}, "spec": spec}))
    return tmp_path


def stage(text, name):
    return next(one for one in yaml.safe_load_all(text) if one["metadata"]["name"] == name)


def labelled(one):
    return [e for e in one["spec"]["selector"]["matchExpressions"] if OUTCOME in e["key"] or FAIL in e["key"]]


@pytest.mark.parametrize(("name", "outcome"), [("pod-complete", "complete"), ("pod-container-running-failed", "fail")])
def test_a_pod_ends_at_once_when_it_is_told(kwok, name, outcome):
    told = stage(stages(kwok, complete=False), name)
    assert labelled(told) == [{"key": f'.metadata.labels["{OUTCOME}"]', "operator": "In", "values": [outcome]}]
    assert "delay" not in told["spec"]


def test_a_pod_completes_by_itself_only_where_that_is_asked_for_and_it_is_told_nothing(kwok):
    alone = stage(stages(kwok, complete=True), "pod-complete-by-itself")
    assert [one["operator"] for one in labelled(alone)] == ["DoesNotExist"]
    assert alone["spec"]["delay"]["durationMilliseconds"] >= 1000
    names = [one["metadata"]["name"] for one in yaml.safe_load_all(stages(kwok, complete=False))]
    assert "pod-complete-by-itself" not in names
