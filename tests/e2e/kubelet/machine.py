"""This machine as nodes: what the kubelet tells the API server about each, and that it lives."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LABEL = "topolab.dev/kubelet"
LEASE_FOLDER = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
LEASE_S = 40
"""As the real kubelet's; a node whose lease is older is NotReady."""


@dataclass(frozen=True)
class Share:
    """What of this machine one node offers."""

    cpu_millis: int
    memory_mib: int
    pods: int


def share_of(nodes: int, pods: int) -> Share:
    """An equal share of this machine for each of `nodes`: all of them together offer no more than there is."""
    memory = Path("/proc/meminfo").read_text().split()
    memory_kib = int(memory[memory.index("MemTotal:") + 1])
    return Share((os.cpu_count() or 1) * 1000 // nodes, memory_kib // 1024 // nodes, pods)


def node(name: str) -> dict[str, Any]:
    """The Node. Pods of a local machine tolerate nothing, so others can only be asked to go elsewhere."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {LABEL: "process", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
        },
        "spec": {"taints": [{"key": LABEL, "value": "process", "effect": "PreferNoSchedule"}]},
    }


def node_status(name: str, share: Share, since: datetime, now: datetime) -> dict[str, Any]:
    """Its status; a strategic merge patch."""
    resources = {"cpu": f"{share.cpu_millis}m", "memory": f"{share.memory_mib}Mi", "pods": str(share.pods)}
    fine = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
    machine = os.uname()
    return {
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
            "conditions": [
                {
                    "type": kind,
                    "status": value,
                    "reason": "ProcessKubelet",
                    "message": "pods are processes of this machine",
                    "lastHeartbeatTime": stamp(now),
                    "lastTransitionTime": stamp(since),
                }
                for kind, value in fine.items()
            ],
            "nodeInfo": {
                "architecture": "amd64" if machine.machine == "x86_64" else machine.machine,
                "operatingSystem": "linux",
                "kernelVersion": machine.release,
                "osImage": "this machine",
                "containerRuntimeVersion": "process://1",
                "kubeletVersion": "process",
                **dict.fromkeys(("bootID", "machineID", "systemUUID", "kubeProxyVersion"), ""),
            },
        }
    }


def lease(name: str, now: datetime) -> dict[str, Any]:
    """The sign of life that the node controller looks at."""
    spec: Mapping[str, Any] = {
        "holderIdentity": name,
        "leaseDurationSeconds": LEASE_S,
        "renewTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": spec,
    }


def stamp(moment: datetime) -> str:
    """A time as Kubernetes writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
