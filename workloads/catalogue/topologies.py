"""Topologies: the grammar of their names, and the arms that carry a name of their own.

    <machine>-<pods>x<GPUs per pod>-<link>[-<variant>...]

link: `efa<devices per pod>`, `tcp`, or `local` (one pod, no network device). Variants, in this order: a rate
(`200mbit`, `25gbit`; local machines with link tcp only), `pg`, `hostnet`, `hostipc`, `tuned`, `shm`,
`push`/`pull`. On `cpu` the GPUs per pod are ranks.
"""

import difflib
import re
from dataclasses import dataclass
from typing import Literal

from workloads.catalogue.machines import NAMED_MACHINES, Machine, find_machine

Link = Literal["efa", "tcp", "local"]
Variant = Literal["pg", "hostnet", "hostipc", "tuned", "shm", "push", "pull"]
VARIANTS: tuple[Variant, ...] = ("pg", "hostnet", "hostipc", "tuned", "shm", "push", "pull")

_NAME = re.compile(
    r"(?P<machine>[a-z0-9]+)-(?P<pods>[1-9][0-9]*)x(?P<gpus>[1-9][0-9]*)-(?P<link>efa[1-9][0-9]*|tcp|local)"
    r"(?P<variants>(-[a-z0-9]+)*)"
)
_RATE = re.compile(r"(?P<number>[1-9][0-9]*)(?P<unit>mbit|gbit)")


@dataclass(frozen=True, kw_only=True)
class Topology:
    """One named arrangement of pods, GPUs and the link between them."""

    name: str
    machine: Machine
    pods: int
    gpus_per_pod: int
    link: Link
    efa_devices_per_pod: int
    rate_bits_per_s: float | None
    variants: tuple[Variant, ...]

    @property
    def ranks(self) -> int:
        """One rank a GPU (a process on `cpu`)."""
        return self.pods * self.gpus_per_pod

    @property
    def pods_per_node(self) -> int:
        """Pods fill nodes: as many as GPUs and EFA devices of a node allow, at most all of them.

        `hostnet` pods share the host's ports, so each has a node to itself. A local machine is one node.
        """
        if self.machine.is_local:
            return self.pods
        by_gpus = self.machine.node_gpus // self.gpus_per_pod
        by_efa = self.machine.efa_devices // self.efa_devices_per_pod if self.efa_devices_per_pod else by_gpus
        by_network = 1 if "hostnet" in self.variants else by_gpus
        return min(by_gpus, by_efa, by_network, self.pods)

    @property
    def nodes(self) -> int:
        """Nodes that the topology occupies."""
        return -(-self.pods // self.pods_per_node)


@dataclass(frozen=True, kw_only=True)
class NamedTopology:
    """A row of the table of arms: where it comes from and what it shows."""

    name: str
    seed: str | None
    """Number of the arm in the seeds' table."""
    shows: str
    model: str
    recipe: str
    measured_total_s: float | None = None
    """Total of 50 steps by the seeds' author, 8% uncertainty."""


NAMED_TOPOLOGIES: tuple[NamedTopology, ...] = (
    NamedTopology(
        name="g6e12xl-4x4-efa1", seed="S1", shows="four nodes of PCIe GPUs over one 100 Gb/s EFA each",
        model="llama-3-8b", recipe="seed-g6e", measured_total_s=2441.04,
    ),
    NamedTopology(
        name="g6e12xl-4x4-tcp", seed="S2", shows="the same nodes over plain TCP",
        model="llama-3-8b", recipe="seed-g6e", measured_total_s=5408.85,
    ),
    NamedTopology(
        name="p4d24xl-1x4-efa4", seed="S3", shows="one pod, NVLink inside; its EFA devices stay idle",
        model="llama-3-8b", recipe="seed-p4d", measured_total_s=981.0,
    ),
    NamedTopology(
        name="p4d24xl-4x1-efa1", seed="S4", shows="four pods of one node: NVLink lost, EFA looped through the host",
        model="llama-3-8b", recipe="seed-p4d", measured_total_s=2372.0,
    ),
    NamedTopology(
        name="p4d24xl-4x1-tcp", seed="S5", shows="four pods of one node over same-host TCP; the NIC stays idle",
        model="llama-3-8b", recipe="seed-p4d",
    ),
    NamedTopology(
        name="g6e8xl-4x1-efa1", seed="S6", shows="four one-GPU nodes over a 25 Gb/s EFA each",
        model="llama-3-8b", recipe="seed-g6e",
    ),
    NamedTopology(
        name="g6e8xl-16x1-efa1", seed="S7", shows="one pod per GPU on sixteen nodes",
        model="llama-3-8b", recipe="seed-g6e",
    ),
    NamedTopology(
        name="p548xl-1x8-efa32", seed="S8", shows="one pod of eight H100 on NVLink",
        model="llama-3-8b", recipe="auto",
    ),
    NamedTopology(
        name="p4d24xl-2x8-efa4", seed="S9", shows="NVLink inside, EFA across: the slowest link sets the pace",
        model="llama-3-8b", recipe="auto",
    ),
    NamedTopology(
        name="p4d24xl-1x8-efa4", seed="S9", shows="the one-node partner of p4d24xl-2x8-efa4",
        model="llama-3-8b", recipe="auto",
    ),
    NamedTopology(
        name="p4d24xl-2x8-efa4-hostnet", seed="S10", shows="the same with the host's network",
        model="llama-3-8b", recipe="auto",
    ),
    NamedTopology(
        name="p4d24xl-8x1-tcp", seed="S25", shows="eight one-GPU pods of one node, against p4d24xl-1x8-efa4",
        model="llama-3-8b", recipe="auto",
    ),
    NamedTopology(
        name="g6e12xl-4x4-tcp-tuned", seed=None, shows="TCP with enough sockets, threads and channels",
        model="llama-3-8b", recipe="seed-g6e",
    ),
    NamedTopology(
        name="g6e12xl-4x4-tcp-hostnet", seed=None, shows="TCP on the host's network",
        model="llama-3-8b", recipe="seed-g6e",
    ),
    NamedTopology(
        name="g6e12xl-4x4-efa1-pg", seed=None, shows="S1 in a cluster placement group",
        model="llama-3-8b", recipe="seed-g6e",
    ),
    NamedTopology(
        name="g6e12xl-4x4-tcp-pg", seed=None, shows="S2 in a cluster placement group",
        model="llama-3-8b", recipe="seed-g6e",
    ),
    NamedTopology(
        name="g6e8xl-2x1-efa1", seed=None, shows="the cheapest true experiment, over EFA",
        model="llama-3.2-1b", recipe="auto",
    ),
    NamedTopology(
        name="g6e8xl-2x1-tcp", seed=None, shows="the cheapest true experiment, over TCP",
        model="llama-3.2-1b", recipe="auto",
    ),
    NamedTopology(
        name="g6e8xl-2x1-tcp-tuned", seed=None, shows="the cheapest true experiment, over tuned TCP",
        model="llama-3.2-1b", recipe="auto",
    ),
    NamedTopology(
        name="cpu-1x2-local", seed=None, shows="the lab: two ranks in one pod",
        model="tiny", recipe="auto",
    ),
    NamedTopology(
        name="cpu-2x1-tcp", seed=None, shows="the lab: two pods over an undialled link",
        model="tiny", recipe="auto",
    ),
    NamedTopology(
        name="cpu-2x1-tcp-1gbit", seed=None, shows="the lab: two pods over a fast link",
        model="tiny", recipe="auto",
    ),
    NamedTopology(
        name="cpu-2x1-tcp-50mbit", seed=None, shows="the lab: two pods over a slow link",
        model="tiny", recipe="auto",
    ),
    NamedTopology(
        name="cpu-2x1-tcp-20mbit", seed=None, shows="the lab: two pods over the slow link of its default",
        model="tiny", recipe="auto",
    ),
    NamedTopology(
        name="h200x4-1x4-local", seed=None, shows="four GPUs of one host in one pod: NVLink",
        model="llama-3.2-1b", recipe="auto",
    ),
    NamedTopology(
        name="h200x4-1x4-local-shm", seed=None, shows="the same with P2P off: shared memory",
        model="llama-3.2-1b", recipe="auto",
    ),
    NamedTopology(
        name="h200x4-4x1-tcp-25gbit", seed=None, shows="four one-GPU pods of one host over dialled sockets",
        model="llama-3.2-1b", recipe="auto",
    ),
)  # fmt: skip  # one table: a line break per field would hide the columns


def parse_topology(name: str, detected: Machine | None = None) -> Topology:
    """The topology of that name; a ValueError says which part of it can't be and offers the nearest names."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(
            f"{name!r} is no topology: write <machine>-<pods>x<GPUs per pod>-<efaN|tcp|local>[-<variant>...]"
            f"{_nearest(name)}"
        )
    machine = find_machine(match["machine"], detected)
    if machine is None:
        known = ", ".join(m.slug for m in NAMED_MACHINES)
        raise ValueError(f"{name!r} names no known machine ({match['machine']}); known: {known}{_nearest(name)}")
    rate, variants = _variants(name, match["variants"].split("-")[1:])
    link, efa = _link(match["link"])
    topology = Topology(
        name=name,
        machine=machine,
        pods=int(match["pods"]),
        gpus_per_pod=int(match["gpus"]),
        link=link,
        efa_devices_per_pod=efa,
        rate_bits_per_s=rate,
        variants=variants,
    )
    faults = _faults(topology)
    if faults:
        raise ValueError(f"{name!r}: {'; '.join(faults)}")
    return topology


def _link(text: str) -> tuple[Link, int]:
    if text.startswith("efa"):
        return "efa", int(text.removeprefix("efa"))
    return ("tcp" if text == "tcp" else "local"), 0


def _variants(name: str, words: list[str]) -> tuple[float | None, tuple[Variant, ...]]:
    rate = _rate(words[0]) if words else None
    rest = words if rate is None else words[1:]
    unknown = [w for w in rest if w not in VARIANTS]
    if unknown:
        raise ValueError(
            f"{name!r}: {unknown[0]!r} is no variant; known, in this order: a rate such as 200mbit, "
            f"{', '.join(VARIANTS)}{_nearest(name)}"
        )
    variants = tuple(v for v in VARIANTS if v in rest)
    if list(variants) != rest:
        raise ValueError(f"{name!r}: variants stand once and in the order {', '.join(variants)}")
    return rate, variants


def _rate(word: str) -> float | None:
    match = _RATE.fullmatch(word)
    return None if match is None else int(match["number"]) * (1e6 if match["unit"] == "mbit" else 1e9)


def _faults(t: Topology) -> list[str]:
    """Sentences about what can't be, each naming the value and the remedy."""
    faults = _machine_faults(t)
    if t.link == "local" and t.pods != 1:
        faults.append(f"link `local` is one pod, not {t.pods}; write tcp or efa<n>")
    if t.link == "tcp" and t.pods == 1:
        faults.append("one pod crosses no network; write `local`")
    if t.rate_bits_per_s is not None and not (t.machine.is_local and t.link == "tcp"):
        faults.append("a rate can be dialled on local machines with link tcp only; drop it")
    if len({"shm", "push", "pull"} & set(t.variants)) > 1:
        faults.append("shm, push and pull exclude each other; keep one")
    if t.machine.gpu is None and t.variants:
        faults.append(f"variant {t.variants[0]} needs a GPU machine; `cpu` has none of them")
    if t.machine.is_local and {"pg", "hostnet", "hostipc"} & set(t.variants):
        faults.append("pg, hostnet and hostipc need EC2 nodes; drop them on a local machine")
    if "tuned" in t.variants and t.link != "tcp":
        faults.append("`tuned` sets sockets and threads, so it needs link tcp")
    if not re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", t.name):
        faults.append("the name must be a DNS-1035 label of at most 63 characters")
    return faults


def _machine_faults(t: Topology) -> list[str]:
    machine, faults = t.machine, []
    if machine.node_gpus and t.gpus_per_pod > machine.node_gpus:
        faults.append(f"a pod of {t.gpus_per_pod} GPUs doesn't fit {machine.name}, which has {machine.node_gpus}")
    if machine.is_local and machine.node_gpus and t.ranks > machine.node_gpus:
        faults.append(f"{t.ranks} GPUs are asked of {machine.name}, which has {machine.node_gpus}")
    if t.efa_devices_per_pod > machine.efa_devices:
        faults.append(
            f"efa{t.efa_devices_per_pod} asks a pod for {t.efa_devices_per_pod} EFA devices, but {machine.name} "
            f"has {machine.efa_devices}; write "
            + (f"efa{machine.efa_devices} or fewer" if machine.efa_devices else "tcp")
        )
    return faults


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name, [t.name for t in NAMED_TOPOLOGIES], n=3, cutoff=0.5)
    return f"; nearest: {', '.join(near)}" if near else ""
