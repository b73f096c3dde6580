"""Where the pods stand: a bridge in a network namespace of its own, or the machine's loopback.

The kubelet itself stays in the machine's namespace, where the API server is. Namespaces are a thread's: one thread
leaves for a new one, owns the network there and starts every pod. It lives as long as the kubelet, and pods ask the
kernel to end them with the thread that started them.
"""

import contextlib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from workloads.lab.kernel import CLONE_NEWNET, unshare
from workloads.lab.links import Network, PodLink, hosts_file
from workloads.lab.loopback import on_loopback
from workloads.lab.pod_program import Surroundings
from workloads.lab.sandbox import RunningPod, start_pod

Pod = Mapping[str, Any]

_PORT = "PET_MASTER_PORT"


@dataclass
class Standing:
    """One pod that was started here."""

    pod: Pod
    running: RunningPod
    address: str | None
    """None: on the loopback."""
    hosts: str = field(default="")
    """What its hosts file says now."""


class Ground:
    """A context manager; nothing of it is left after it. Its methods may be called from any thread."""

    def __init__(self, *, namespaces: bool) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ground")
        self._namespaces = namespaces
        self._network: Network | None = None
        self._here: dict[str, Standing] = {}
        self._ports: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        if self._namespaces:
            self._network = self._thread.submit(_leave_for_a_network).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._network is not None:
            self._thread.submit(self._network.__exit__, None, None, None).result()
        self._thread.shutdown()

    def start(self, pod: Pod, surroundings: Callable[[PodLink | None, str], Surroundings]) -> Standing:
        """Start a pod with what `surroundings` makes of its link and hosts file; ValueError as `start_pod` has it."""
        return self._thread.submit(self._start, pod, surroundings).result()

    def leave(self, standing: Standing) -> None:
        """Take an ended pod's link and names away."""
        uid = standing.pod["metadata"]["uid"]
        with self._lock:
            self._here.pop(uid, None)
        if self._network is not None:
            self._thread.submit(self._network.leave, uid).result()

    def keep_names(self, standing: Standing) -> None:
        """Bring the pod's hosts file to what the cluster's DNS would answer now: peers come and go."""
        if standing.address is not None:
            wanted = self._hosts(standing.pod, standing.address)
            if wanted != standing.hosts and _write_hosts(standing.running.pid, wanted):
                standing.hosts = wanted

    def _start(self, pod: Pod, surroundings: Callable[[PodLink | None, str], Surroundings]) -> Standing:
        if self._network is None:
            moved = self._on_loopback(pod)
            return self._stand(Standing(pod, start_pod(moved, surroundings(None, "")), None))
        uid = pod["metadata"]["uid"]
        link = self._network.join(uid, None)
        hosts = self._hosts(pod, link.address)
        try:
            running = start_pod(pod, surroundings(link, hosts))
        except BaseException:
            self._network.leave(uid)
            raise
        return self._stand(Standing(pod, running, link.address, hosts))

    def _stand(self, standing: Standing) -> Standing:
        with self._lock:
            self._here[standing.pod["metadata"]["uid"]] = standing
        return standing

    def _hosts(self, pod: Pod, address: str) -> str:
        with self._lock:
            others = [one for one in self._here.values() if one.pod["metadata"]["uid"] != pod["metadata"]["uid"]]
        near = [
            (one.pod, one.address)
            for one in others
            if one.address is not None and one.pod["metadata"]["namespace"] == pod["metadata"]["namespace"]
        ]
        return hosts_file(pod, [(pod, address), *near])

    def _on_loopback(self, pod: Pod) -> Pod:
        """Pods of one service meet on one port, which the first of them finds free."""
        (moved,), _ = on_loopback([pod])
        gang = (pod["metadata"]["namespace"], pod["spec"].get("subdomain", pod["metadata"]["uid"]))
        for entry in moved["spec"]["containers"][0].get("env") or ():
            if entry["name"] == _PORT:
                entry["value"] = self._ports.setdefault(gang, entry["value"])
        return moved


def _leave_for_a_network() -> Network:
    unshare(CLONE_NEWNET)
    return Network().__enter__()


def _write_hosts(pod: int, text: str) -> bool:
    """Into the pod's own root, once it has one; `pod`: the process that stands for it here."""
    with contextlib.suppress(OSError, IndexError):
        # The sandbox's outer process has one child, the first of the pod's own pid namespace.
        inner = Path(f"/proc/{pod}/task/{pod}/children").read_text().split()[0]
        hosts = Path(f"/proc/{inner}/root/.topolab/etc/hosts")
        # A file of the pod's root alone: before the pod enters it, the machine's own root shows here.
        if hosts.exists():
            hosts.write_text(text)
            return True
    return False
