"""System nodes: which the fake cloud's node groups want, and their Node objects kept as a kubelet keeps them."""

import datetime
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tests.e2e.cluster.api import Api, ApiError, Document
from workloads.catalogue.versions import KUBERNETES

KUBELET_LABEL = "topolab.dev/kubelet"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_ASK_EVERY_S = 0.5
_LEASE_EVERY_S = 10.0  # the kubelet's own rhythm; the controller manager waits 50 s
_PODS_PER_NODE = 58
_EFFECTS = {"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute", "PREFER_NO_SCHEDULE": "PreferNoSchedule"}
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SystemNode:
    """A node whose pods are controllers, run as processes of this host."""

    name: str
    instance_type: str
    zone: str
    cpu: int
    memory_mib: int
    labels: dict[str, str] = field(default_factory=dict)
    taints: Sequence[dict[str, str]] = ()


def plain_nodes(count: int) -> list[SystemNode]:
    """Nodes of a cluster without a cloud: room for Trainer and JobSet, and for no training pod of a local machine."""
    return [
        SystemNode(name=f"system-{index}", instance_type="local", zone="local", cpu=1, memory_mib=1024)
        for index in range(count)
    ]


class NodeGroups:
    """The node groups of the fake cloud's EKS, looked at a few times a second."""

    def __init__(self) -> None:
        settings = Config(connect_timeout=2, read_timeout=10, retries={"total_max_attempts": 1})
        self._eks: Any = boto3.client("eks", config=settings)
        self._ec2: Any = boto3.client("ec2", config=settings)
        self._sizes: dict[str, tuple[int, int]] = {}
        self._zones: dict[str, str] = {}
        self._last: list[SystemNode] = []
        self._asked = -_ASK_EVERY_S

    def wanted(self) -> list[SystemNode]:
        """The nodes of all active groups; the last known ones while the cloud doesn't answer."""
        if time.monotonic() - self._asked < _ASK_EVERY_S:
            return self._last
        self._asked = time.monotonic()
        try:
            self._last = [
                node
                for cluster in self._eks.list_clusters()["clusters"]
                for group in self._eks.list_nodegroups(clusterName=cluster)["nodegroups"]
                for node in self._nodes(cluster, group)
            ]
        except (BotoCoreError, ClientError) as error:
            _LOGGER.warning("node groups aren't known: %s", error)
        return self._last

    def has_identity(self, namespace: str, account: str) -> bool:
        """Whether a Pod Identity association gives this service account a role now."""
        return any(
            self._eks.list_pod_identity_associations(clusterName=cluster, namespace=namespace, serviceAccount=account)[
                "associations"
            ]
            for cluster in self._eks.list_clusters()["clusters"]
        )

    def _nodes(self, cluster: str, name: str) -> list[SystemNode]:
        group = self._eks.describe_nodegroup(clusterName=cluster, nodegroupName=name)["nodegroup"]
        if group["status"] not in ("ACTIVE", "UPDATING"):
            return []
        instance_type = group["instanceTypes"][0]
        cpu, memory_mib = self._size(instance_type)
        zones = sorted({self._zone(subnet) for subnet in group["subnets"]})
        return [
            SystemNode(
                name=f"{name}-{index}".lower(),
                instance_type=instance_type,
                zone=zones[index % len(zones)],
                cpu=cpu,
                memory_mib=memory_mib,
                labels={"eks.amazonaws.com/nodegroup": name, **(group.get("labels") or {})},
                taints=[_taint(taint) for taint in group.get("taints") or ()],
            )
            for index in range(group["scalingConfig"]["desiredSize"])
        ]

    def _zone(self, subnet: str) -> str:
        if subnet not in self._zones:
            found = self._ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]
            self._zones[subnet] = found["AvailabilityZone"]
        return self._zones[subnet]

    def _size(self, instance_type: str) -> tuple[int, int]:
        if instance_type not in self._sizes:
            found = self._ec2.describe_instance_types(InstanceTypes=[instance_type])["InstanceTypes"][0]
            self._sizes[instance_type] = (found["VCpuInfo"]["DefaultVCpus"], found["MemoryInfo"]["SizeInMiB"])
        return self._sizes[instance_type]


def _taint(taint: dict[str, str]) -> dict[str, str]:
    return {"key": taint["key"], "value": taint.get("value", ""), "effect": _EFFECTS[taint["effect"]]}


class NodeKeeper:
    """Keeps Node objects equal to the nodes that are wanted, and alive."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._renewed: dict[str, float] = {}

    def joined(self) -> set[str]:
        """Names of the nodes that the cluster has."""
        found = self._api.items("/api/v1/nodes", labelSelector=f"{KUBELET_LABEL}=system")
        return {node["metadata"]["name"] for node in found}

    def join(self, node: SystemNode) -> None:
        """Register it, as the kubelet does: it is Ready at once."""
        self._api.create("/api/v1/nodes", node_document(node))
        status = _status(node)
        for condition in status["conditions"]:
            condition["lastTransitionTime"] = condition["lastHeartbeatTime"]
        self._api.patch(f"/api/v1/nodes/{node.name}/status", {"status": status}, kind="strategic")
        self._renew(node.name)

    def leave(self, name: str) -> None:
        """Take it out of the cluster, with the pods that were bound to it: nobody will ever report them again."""
        for pod in self._api.items("/api/v1/pods", fieldSelector=f"spec.nodeName={name}"):
            metadata = pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            self._api.delete(path, grace_s=0, uid=metadata["uid"])
        self._api.delete(f"{_LEASES}/{name}")
        self._api.delete(f"/api/v1/nodes/{name}")
        self._renewed.pop(name, None)

    def keep_alive(self, nodes: Iterable[SystemNode]) -> None:
        """Renew the leases and states that are due."""
        for node in nodes:
            if time.monotonic() - self._renewed.get(node.name, -_LEASE_EVERY_S) >= _LEASE_EVERY_S:
                self._api.patch(f"/api/v1/nodes/{node.name}/status", {"status": _status(node)}, kind="strategic")
                self._renew(node.name)

    def _renew(self, name: str) -> None:
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": _now("%Y-%m-%dT%H:%M:%S.%fZ")}
        try:
            self._api.patch(f"{_LEASES}/{name}", {"spec": spec})
        except ApiError as error:
            if error.status != 404:
                raise
            metadata = {"name": name, "namespace": "kube-node-lease"}
            self._api.create(
                _LEASES,
                {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec},
            )
        self._renewed[name] = time.monotonic()


def node_document(node: SystemNode) -> Document:
    """The Node as the kubelet of an EKS node registers it."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "labels": {
                "kubernetes.io/hostname": node.name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "node.kubernetes.io/instance-type": node.instance_type,
                "topology.kubernetes.io/zone": node.zone,
                "topology.kubernetes.io/region": node.zone.rstrip("abcdef"),
                KUBELET_LABEL: "system",
                **node.labels,
            },
        },
        "spec": {"taints": list(node.taints), "providerID": f"aws:///{node.zone}/{node.name}"},
    }


def _status(node: SystemNode) -> Document:
    capacity = {"cpu": str(node.cpu), "memory": f"{node.memory_mib}Mi", "pods": str(_PODS_PER_NODE)}
    now = _now()
    conditions = [("Ready", "True", "KubeletReady")]
    conditions += [(kind, "False", "Enough") for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")]
    return {
        "capacity": capacity,
        "allocatable": capacity,
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": node.name}],
        "nodeInfo": {"kubeletVersion": f"v{KUBERNETES}.0-topolab", "architecture": "amd64", "operatingSystem": "linux"},
        "conditions": [
            {"type": kind, "status": status, "reason": reason, "message": reason, "lastHeartbeatTime": now}
            for kind, status, reason in conditions
        ],
    }


def _now(form: str = "%Y-%m-%dT%H:%M:%SZ") -> str:
    return datetime.datetime.now(datetime.UTC).strftime(form)
