"""A Kubernetes cluster of processes: control plane, system nodes that run controllers, GPU nodes that are fake."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.e2e.children import Children, wait_until
from tests.e2e.cluster.api import Api
from tests.e2e.cluster.control_plane import READY_S, ControlPlane
from tests.e2e.cluster.fake_nodes import FAKE, OUTCOME, Outcome, fake_node, stages
from tests.e2e.cluster.memory import resident_mib
from tests.e2e.cluster.system_nodes import KUBELET_LABEL
from tests.e2e.karpenter.rights import kwok_rights
from tests.e2e.site import Site
from tests.e2e.tools import module_path

_CHECKOUT = Path(__file__).parents[3]
_KEEPER, _KWOK, _API_SERVER = "keeper", "kwok", "kube-apiserver"
_IN_ORDER_OF_ENDING = (_KEEPER, _KWOK, "kube-scheduler", "kube-controller-manager", _API_SERVER, "etcd")


class Cluster:
    """One running cluster; a context manager that ends its processes, and tells when one had ended by itself."""

    def __init__(self, site: Site, children: Children, plane: ControlPlane, api: Api) -> None:
        self.site = site
        self.api = api
        """As its admin."""
        self._children, self._plane = children, plane
        self._answers = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        names = [name for name in _IN_ORDER_OF_ENDING if name != _API_SERVER or self._answers]
        ended = [child for name in names if (child := self._children[name]).process.poll() is not None]
        for name in names:
            self._children.stop(name, kill=True)
        if ended and error is None:
            ends = "\n".join(f"{child.name} ({child.log}):\n{child.last_lines()}" for child in ended)
            raise RuntimeError(f"ended before the cluster did: {ends}")

    def stop_api_server(self) -> None:
        """Let the API server vanish; everything else lives on."""
        self._plane.stop_api_server()
        self._answers = False

    def start_api_server(self) -> None:
        """Bring it back at the same address, and wait until it is ready."""
        self._plane.start_api_server()
        self._answers = True

    def add_fake_gpu_nodes(
        self,
        instance_type: str,
        count: int,
        *,
        zone: str,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
        capacity: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Nodes of a catalogue's instance type that nothing but kwok runs; returns their names once all are Ready."""
        slug = instance_type.replace(".", "-")
        taken = {node["metadata"]["name"] for node in self.api.items("/api/v1/nodes")}
        free = (f"{slug}-{index}" for index in range(len(taken) + count))
        names = [name for name in free if name not in taken][:count]
        for name in names:
            node = fake_node(
                name, instance_type, zone=zone, labels=labels or {}, taints=taints, capacity=capacity or {}
            )
            self.api.create("/api/v1/nodes", node)
        wait_until(lambda: all(self.is_ready(name) for name in names), READY_S, f"fake nodes {', '.join(names)} Ready")
        return names

    def is_ready(self, node: str) -> bool:
        """Whether a node is Ready."""
        conditions = self.api.get(f"/api/v1/nodes/{node}")["status"].get("conditions") or ()
        return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)

    def end_pods(self, namespace: str, selector: str, outcome: Outcome) -> list[str]:
        """Tell fake pods how to end; the names of those that were told."""
        found = self.api.items(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)
        names = [pod["metadata"]["name"] for pod in found]
        for name in names:
            label = {"metadata": {"labels": {OUTCOME: outcome}}}
            self.api.patch(f"/api/v1/namespaces/{namespace}/pods/{name}", label)
        return names

    def resident_mib(self) -> dict[str, float]:
        """Memory by program: control plane, kwok, keeper and the controllers that it runs."""
        return resident_mib(self._children[name].process.pid for name in _IN_ORDER_OF_ENDING)


def start_cluster(site: Site, children: Children, *, system_nodes: int = 0, pods_complete: bool = True) -> Cluster:
    """Start all of it and write `site.kubeconfig`; from the main thread only (tests.e2e.children).

    `system_nodes`: that are there at once, beside those of the fake cloud's node groups. `pods_complete`: fake
    pods of a Job complete by themselves after `fake_nodes.RUN_S`; else they run until `Cluster.end_pods`.
    """
    folder = site.folder / "cluster"
    plane = ControlPlane(folder, kubebox=site.tools / "kubebox", admin=site.kubeconfig, children=children)
    api = plane.start()
    for document in kwok_rights(module_path):
        api.apply(document)
    _start_kwok(site, folder, children, pods_complete=pods_complete)
    _start_keeper(site, folder, children, system_nodes)
    plane.await_service_accounts(api)
    cluster = Cluster(site, children, plane, api)
    children.await_ready(_KEEPER, lambda: _system_nodes_ready(cluster) >= system_nodes, READY_S)
    return cluster


def _start_kwok(site: Site, folder: Path, children: Children, *, pods_complete: bool) -> None:
    configuration = folder / "kwok.yaml"
    configuration.write_text(stages(module_path("sigs.k8s.io/kwok"), complete=pods_complete))
    flags = {
        "kubeconfig": site.kubeconfig,
        "config": configuration,
        "manage-all-nodes": "false",
        "manage-nodes-with-annotation-selector": f"{FAKE}=fake",
        "node-lease-duration-seconds": 40,
        # Apart from the addresses of system pods; nobody dials either.
        "cidr": "10.245.0.0/16",
    }
    words = [f"--{flag}={value}" for flag, value in flags.items()]
    children.start(_KWOK, [site.tools / "kwok", *words], {"HOME": str(folder)}, folder=folder)


def _start_keeper(site: Site, folder: Path, children: Children, system_nodes: int) -> None:
    site.save()
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(_CHECKOUT), **site.environment()}
    command = [sys.executable, "-m", "tests.e2e.cluster.keeper", str(folder), f"--system-nodes={system_nodes}"]
    # In its folder, because the socket that it opens there is short by being relative.
    children.start(_KEEPER, command, environment, folder=folder)


def _system_nodes_ready(cluster: Cluster) -> int:
    found = cluster.api.items("/api/v1/nodes", labelSelector=f"{KUBELET_LABEL}=system")
    return sum(cluster.is_ready(node["metadata"]["name"]) for node in found)
