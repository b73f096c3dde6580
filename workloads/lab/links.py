"""Links that can be dialled: a bridge, and for each pod a network namespace with one `eth0` of a given rate.

A rate is set in both directions, as a NIC has one each way: on the pod's `eth0` it limits what the pod sends,
on the host's end of the pair what all its peers together can send to it (three pods that send to a fourth
would else reach it at three times its rate). No route leads out of the bridge, and IPv6 is off, so the
counters hold nothing but the pods' own traffic.
"""

import ipaddress
import itertools
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from workloads.lab.capability import find_tool
from workloads.lab.kernel import CLONE_NEWNET, join_namespace, unshare

JUMBO_MTU = 9000
"""Bytes; as used for the measured figures of 4 namespaces on a bridge. EC2's own is 9001."""

_QUEUE = "50ms"
"""The longest wait in a full queue; beyond it packets are dropped, as a switch does."""


def burst_bytes(rate_bits_per_s: float) -> int:
    """Bytes that may pass at once after a pause: what the rate lets pass in 10 ms, within 16 KiB and 4 MiB.

    Both measured settings follow from it: 256 kB at 200 Mbit/s (198.6 Mbit/s seen), 4 MB at 25 Gbit/s. A
    larger burst makes short transfers look faster than the link, a smaller one loses rate whenever a timer
    fires late. The floor holds one jumbo frame, which tbf would else drop.
    """
    return round(min(max(rate_bits_per_s / 8 * 0.010, 16 * 1024), 4 * 1024 * 1024))


@dataclass(frozen=True)
class LinkBytes:
    """Bytes since the link was made, as the host's end of it counted them (Ethernet headers included)."""

    sent: int
    """By the pod."""
    received: int
    """By the pod."""


@dataclass(frozen=True)
class PodLink:
    """One pod's place on a network."""

    pod: str
    address: str
    namespace: int
    """Open file of the pod's network namespace, which lives as long as this file or a process in it."""
    interface: str
    """The host's end of the pair."""


class Network:
    """A bridge in the current network namespace and the pods on it; a context manager.

    Needs the rights of `workloads.lab.capability`. Raises ValueError when the kernel refuses a part.
    """

    def __init__(self, bridge: str = "topolab0", subnet: str = "10.90.0.0/16") -> None:
        self._bridge = bridge
        self._subnet = ipaddress.ip_network(subnet)
        self._addresses = self._subnet.hosts()
        # Pods come and go: a number is never given twice.
        self._numbers = itertools.count()
        self._links: dict[str, PodLink] = {}

    def __enter__(self) -> Self:
        _ip(
            [
                # A bridge that snoops joins multicast groups, and its reports would be counted as the pods' bytes.
                f"link add {self._bridge} type bridge mcast_snooping 0",
                *_quiet_and_up(self._bridge, JUMBO_MTU),
                "link set lo up",
            ]
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pod in tuple(self._links):
            self.leave(pod)
        _ip([f"link delete {self._bridge}"])

    def join(self, pod: str, rate_bits_per_s: float | None) -> PodLink:
        """A namespace for `pod` with an `eth0` of this rate in each direction; None: unlimited."""
        if pod in self._links:
            raise ValueError(f"pod {pod}: is on the network {self._bridge} already; names of pods are unique")
        link = PodLink(pod, str(next(self._addresses)), _new_namespace(), f"{self._bridge}p{next(self._numbers)}")
        self._links[pod] = link
        self._connect(link)
        if rate_bits_per_s is not None:
            _shape(link.interface, rate_bits_per_s, namespace=None)
            _shape("eth0", rate_bits_per_s, namespace=link.namespace)
        return link

    def leave(self, pod: str) -> None:
        """Take the pod's link away; its namespace ends with the last process in it."""
        link = self._links.pop(pod)
        _ip([f"link delete {link.interface}"])
        os.close(link.namespace)

    def counters(self) -> dict[str, LinkBytes]:
        """Bytes of each pod so far."""
        # /sys/class/net shows the counters of the namespace that mounted it; /proc those of the reader's.
        totals = read_interfaces(Path("/proc/thread-self/net/dev").read_text())
        return {
            pod: LinkBytes(sent=totals[link.interface].received, received=totals[link.interface].sent)
            for pod, link in self._links.items()
        }

    def _connect(self, link: PodLink) -> None:
        inside = f"/proc/self/fd/{link.namespace}"
        _ip(
            [
                f"link add {link.interface} type veth peer name eth0 netns {inside}",
                f"link set {link.interface} master {self._bridge}",
                *_quiet_and_up(link.interface, JUMBO_MTU),
            ],
            pass_descriptor=link.namespace,
        )
        _ip(
            [
                *_quiet_and_up("eth0", JUMBO_MTU),
                f"address add {link.address}/{self._subnet.prefixlen} dev eth0",
                "link set lo up",
            ],
            namespace=link.namespace,
        )


def read_interfaces(table: str) -> dict[str, LinkBytes]:
    """Bytes sent and received per interface, from the text of a /proc/<pid>/net/dev."""
    rows = (line.split(":", 1) for line in table.splitlines() if ":" in line)
    # Columns of proc(5): bytes received is the first, bytes sent the ninth.
    return {name.strip(): LinkBytes(sent=int(cells.split()[8]), received=int(cells.split()[0])) for name, cells in rows}


def hosts_file(pod: Mapping[str, Any], peers: Iterable[tuple[Mapping[str, Any], str]]) -> str:
    """The pod's /etc/hosts: what the cluster's DNS answers for pods with hostname and subdomain.

    `peers` are (Pod, address) and hold the pod itself, which also knows its bare names.
    """
    lines = ["127.0.0.1 localhost"]
    for peer, address in peers:
        own = _bare_names(peer) if peer["metadata"]["name"] == pod["metadata"]["name"] else []
        names = [*_service_names(peer), *own]
        if names:
            lines.append(" ".join([address, *dict.fromkeys(names)]))
    return "\n".join(lines) + "\n"


def _bare_names(pod: Mapping[str, Any]) -> list[str]:
    name = pod["metadata"]["name"]
    return [pod["spec"].get("hostname", name), name]


def _service_names(pod: Mapping[str, Any]) -> list[str]:
    spec, namespace = pod["spec"], pod["metadata"].get("namespace", "default")
    if not (spec.get("hostname") and spec.get("subdomain")):
        return []
    short = f"{spec['hostname']}.{spec['subdomain']}"
    return [
        short,
        f"{short}.{namespace}",
        f"{short}.{namespace}.svc",
        f"{short}.{namespace}.svc.cluster.local",
    ]


def _new_namespace() -> int:
    """An open file of a new network namespace; this thread stays where it is."""
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        unshare(CLONE_NEWNET)
        try:
            return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            join_namespace(here, CLONE_NEWNET)
    finally:
        os.close(here)


def _quiet_and_up(interface: str, mtu: int) -> list[str]:
    """Without an IPv6 address the kernel sends no neighbour or multicast messages of its own."""
    return [f"link set {interface} mtu {mtu} addrgenmode none", f"link set {interface} up"]


def _shape(interface: str, rate_bits_per_s: float, namespace: int | None) -> None:
    rate, burst = round(rate_bits_per_s), burst_bytes(rate_bits_per_s)
    line = f"qdisc add dev {interface} root tbf rate {rate}bit burst {burst}b latency {_QUEUE}"
    _batch("tc", [line], namespace)


def _ip(lines: list[str], namespace: int | None = None, pass_descriptor: int | None = None) -> None:
    _batch("ip", lines, namespace, pass_descriptor)


def _batch(tool: str, lines: list[str], namespace: int | None, pass_descriptor: int | None = None) -> None:
    """Run the lines through one `ip -batch` or `tc -batch`, inside `namespace` where one is given."""
    command = [find_tool(tool), "-batch", "-"]
    if namespace is not None:
        command = [find_tool("nsenter"), f"--net=/proc/self/fd/{namespace}", *command]
    passed = [descriptor for descriptor in (namespace, pass_descriptor) if descriptor is not None]
    result = subprocess.run(
        command, input="\n".join(lines) + "\n", text=True, capture_output=True, pass_fds=passed, check=False
    )
    if result.returncode != 0:
        raise ValueError(f"the kernel refused a link of the lab: {tool}: {result.stderr.strip()} (of {lines})")
