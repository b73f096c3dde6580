"""The keeper of the system nodes, a process of its own: `python -m tests.e2e.cluster.keeper FOLDER`.

It starts the controllers from its main thread, and the kernel ends them with it (tests.e2e.children).
"""

import argparse
import ipaddress
import itertools
import logging
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from botocore.exceptions import BotoCoreError, ClientError

from tests.e2e.children import Children
from tests.e2e.cluster.api import Api, ApiError, Document, Unreachable
from tests.e2e.cluster.control_plane import EGRESS_SOCKET
from tests.e2e.cluster.host import ProcessHost
from tests.e2e.cluster.pod_program import container_ports
from tests.e2e.cluster.service_proxy import Address, ServiceProxy
from tests.e2e.cluster.system_nodes import NodeGroups, NodeKeeper, SystemNode, plain_nodes
from tests.e2e.cluster.system_pods import SystemPod
from tests.e2e.cluster.webhooks import trust
from tests.e2e.site import Site

LOOK_EVERY_S = 0.25
_POD_ADDRESSES = ipaddress.ip_address("10.244.0.0")  # nobody dials them: kube-proxy and its pods share one host
_LOGGER = logging.getLogger("keeper")


class Keeper:
    """Looks at cloud and cluster and does what a cloud's node groups and their kubelets would."""

    def __init__(self, site: Site, folder: Path, own: list[SystemNode], children: Children) -> None:
        self._api = Api.of(site.kubeconfig)
        self._authority = (folder / "ca.crt").read_bytes()
        self._own = own
        self._groups = NodeGroups() if site.aws_endpoint else None
        self._host = ProcessHost(site, folder, self._groups, children)
        self._nodes = NodeKeeper(self._api)
        self._pods: dict[str, SystemPod] = {}
        self._addresses: Iterator[int] = itertools.count(1)
        self._proxy = ServiceProxy(Path(EGRESS_SOCKET))

    def start(self) -> None:
        """Open the way to Services."""
        self._proxy.start()

    def look(self) -> None:
        """Once; every fault of cluster or cloud is told, and the next look tries again."""
        if self._proxy.broken.is_set():
            raise RuntimeError("the way from the API server to Services is closed; the lines above say why")
        try:
            self._look()
        except (Unreachable, ApiError, BotoCoreError, ClientError) as error:
            _LOGGER.warning("%s", error)

    def _look(self) -> None:
        wanted = {node.name: node for node in self._wanted()}
        self._keep_nodes(wanted)
        bound = self._bound_to(set(wanted))
        for uid in self._pods.keys() - bound.keys():
            self._pods.pop(uid).kill()
        for uid, pod in bound.items():
            if uid not in self._pods:
                address = str(_POD_ADDRESSES + next(self._addresses))
                self._pods[uid] = SystemPod(pod=pod, address=address, api=self._api, host=self._host)
        if any(pod.running for pod in self._pods.values()):
            trust(self._api, self._authority, {pod.pod["metadata"]["namespace"] for pod in self._pods.values()})
        for uid, pod in bound.items():
            self._pods[uid].step(pod)
        self._proxy.route(_routes(self._services(), list(self._pods.values())))

    def _wanted(self) -> list[SystemNode]:
        return [*self._own, *(self._groups.wanted() if self._groups else ())]

    def _keep_nodes(self, wanted: dict[str, SystemNode]) -> None:
        joined = self._nodes.joined()
        for name in sorted(wanted.keys() - joined):
            self._nodes.join(wanted[name])
            self._host.note("joined", f"Node/{name}")
        for name in sorted(joined - wanted.keys()):
            self._leave(name)
        self._nodes.keep_alive(wanted[name] for name in sorted(wanted.keys() & joined))

    def _leave(self, name: str) -> None:
        """A terminated instance: its processes end first, whatever the API server knows of it."""
        for uid, pod in list(self._pods.items()):
            if pod.pod["spec"]["nodeName"] == name:
                self._pods.pop(uid).kill()
        self._nodes.leave(name)
        self._host.note("left", f"Node/{name}")

    def _bound_to(self, nodes: set[str]) -> dict[str, Document]:
        found = self._api.items("/api/v1/pods", fieldSelector="spec.nodeName!=")
        return {pod["metadata"]["uid"]: pod for pod in found if pod["spec"]["nodeName"] in nodes}

    def _services(self) -> list[Document]:
        return self._api.items("/api/v1/services") if self._pods else []


def _routes(services: list[Document], pods: list[SystemPod]) -> dict[Address, int]:
    """Each Service's address and port to the port of a ready pod that it selects."""
    routes = {}
    for service in services:
        for pod in pods:
            if pod.ready and _selects(service, pod.pod):
                by_name = container_ports(pod.pod)
                for port in service["spec"].get("ports") or ():
                    target = by_name.get(port.get("targetPort", port["port"]))
                    if target is not None:
                        routes[service["spec"]["clusterIP"], port["port"]] = pod.ports[target]
    return routes


def _selects(service: Document, pod: Document) -> bool:
    selector, labels = service["spec"].get("selector") or {}, pod["metadata"].get("labels") or {}
    same = service["metadata"]["namespace"] == pod["metadata"]["namespace"]
    return bool(selector) and same and selector.items() <= labels.items()


def main() -> None:
    """Look a few times a second until told to end."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.cluster.keeper")
    parser.add_argument("folder", type=Path, help="of the control plane")
    parser.add_argument("--system-nodes", type=int, default=0, help="that are there without any cloud")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    told = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        told.set()

    signal.signal(signal.SIGTERM, end)
    site = Site.of_environment()
    with Children(site.logs) as children:
        keeper = Keeper(site, given.folder, plain_nodes(given.system_nodes), children)
        keeper.start()
        while not told.wait(LOOK_EVERY_S):
            keeper.look()


if __name__ == "__main__":
    main()
