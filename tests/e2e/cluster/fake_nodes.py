"""GPU nodes without machines: Node objects that kwok keeps alive, and what it does with their pods."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml

from tests.e2e.cluster.api import Document
from workloads.catalogue.instances import INSTANCE_TYPES, InstanceType

FAKE = "kwok.x-k8s.io/node"
"""Annotation of the nodes that kwok manages."""
OUTCOME = "topolab.dev/outcome"
"""Label by which a test ends a fake pod: `complete` or `fail`; `hold` lets it run where it would complete."""
Outcome = Literal["complete", "fail", "hold"]

RUN_S = 3.0
"""How long a Job's pod runs on a fake node: long enough that no two share a GPU one after the other."""
_FAIL = "pod-container-running-failed.stage.kwok.x-k8s.io"
_PODS_PER_NODE = 110


def fake_node(
    name: str,
    instance_type: str,
    *,
    zone: str,
    labels: Mapping[str, str],
    taints: Sequence[Mapping[str, str]],
    capacity: Mapping[str, str],
) -> Document:
    """A Node with what the catalogue says of its instance type; `capacity` replaces single resources."""
    given = _instance(instance_type)
    devices = {"nvidia.com/gpu": str(given.gpus), "vpc.amazonaws.com/efa": str(given.efa_devices)}
    pods = {"pods": str(_PODS_PER_NODE)}
    whole = {"cpu": str(given.vcpus), "memory": f"{given.memory_gib}Gi", **pods, **devices}
    left = {
        "cpu": f"{given.allocatable_cpu_millis}m",
        "memory": f"{given.allocatable_memory_mib}Mi",
        **pods,
        **devices,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {FAKE: "fake"},
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "node.kubernetes.io/instance-type": instance_type,
                "topology.kubernetes.io/zone": zone,
                **labels,
            },
        },
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {"capacity": {**whole, **capacity}, "allocatable": {**left, **capacity}},
    }


def stages(kwok: Path, *, complete: bool) -> str:
    """kwok's own stages as one file; pods complete by themselves or, like failing, only when told.

    `kwok`: its module's folder, where the stages lie.
    """
    found = [
        _stage(kwok, "node/fast/node-initialize"),
        _stage(kwok, "node/heartbeat-with-lease/node-heartbeat-with-lease"),
        _stage(kwok, "pod/fast/pod-ready"),
        _stage(kwok, "pod/fast/pod-delete"),
        _told(_stage(kwok, "pod/fast/pod-complete"), "complete"),
        _told(_stage(kwok, "pod/chaos/pod-container-running-failed"), "fail"),
    ]
    if complete:
        found.append(_by_itself(_stage(kwok, "pod/fast/pod-complete")))
    return yaml.safe_dump_all(found)


def _instance(name: str) -> InstanceType:
    for one in INSTANCE_TYPES:
        if one.name == name:
            return one
    known = ", ".join(one.name for one in INSTANCE_TYPES)
    raise ValueError(f"instance type {name!r} isn't in the catalogue; take one of {known}")


def _stage(kwok: Path, name: str) -> Any:
    return yaml.safe_load((kwok / "kustomize" / "stage" / f"{name}.yaml").read_text())


def _told(stage: Document, outcome: Outcome) -> Document:
    """Only pods that bear the label, at once."""
    expressions = stage["spec"]["selector"]["matchExpressions"]
    others = [one for one in expressions if _FAIL not in one["key"]]
    stage["spec"]["selector"]["matchExpressions"] = [*others, _labelled("In", [outcome])]
    stage["spec"].pop("delay", None)
    return stage


def _by_itself(stage: Document) -> Document:
    """Pods without the label, after a while."""
    stage["metadata"]["name"] += "-by-itself"
    stage["spec"]["selector"]["matchExpressions"].append(_labelled("DoesNotExist"))
    stage["spec"]["delay"] = {"durationMilliseconds": int(RUN_S * 1000)}
    return stage


def _labelled(operator: str, values: Sequence[str] = ()) -> Document:
    expression: Document = {"key": f'.metadata.labels["{OUTCOME}"]', "operator": operator}
    return expression | ({"values": list(values)} if values else {})
