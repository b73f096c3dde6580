"""What should carry the bytes: environment, expected and forbidden transports, and the rates of links.

The only place that names an NCCL, EFA or gloo variable.
"""

from trainer.config import LinkExpectation
from trainer.contract import Backend, LinkClass
from workloads.catalogue.topologies import Topology
from workloads.planning.prediction import Range

NCCL_LOG_FILES = "/tmp/topolab/nccl.%h.%p"  # a folder of the pod's own /tmp

Variable = tuple[str, str, str]


def backend_of(topology: Topology) -> Backend:
    """NCCL between GPUs, gloo between CPU ranks."""
    return "gloo" if topology.machine.gpu is None else "nccl"


def variables(topology: Topology, *, stock_image: bool) -> tuple[Variable, ...]:
    """Name, value and reason of each variable that shapes the transport."""
    if backend_of(topology) == "gloo":
        return (("GLOO_SOCKET_IFNAME", "eth0", "the pod's own interface, whose bytes are counted"),)
    return (*_logging(), *_network(topology, stock_image), *_intra_node(topology), *_tuning(topology))


def expectations(topology: Topology) -> tuple[LinkExpectation, ...]:
    """What each link class must show; a class without pairs expects nothing."""
    pairs = pairs_by_class(topology)
    same_pod = _same_pod(topology)
    across = _across(topology)
    return (
        _expectation("same-pod", pairs["same-pod"], *same_pod),
        _expectation("same-node", pairs["same-node"], *across),
        _expectation("other-node", pairs["other-node"], *across),
    )


def pairs_by_class(topology: Topology) -> dict[LinkClass, int]:
    """Unordered pairs of ranks in each link class."""
    per_pod, pods, per_node = topology.gpus_per_pod, topology.pods, topology.pods_per_node
    same_pod = pods * per_pod * (per_pod - 1) // 2
    full, rest = divmod(pods, per_node)
    pod_pairs_on_a_node = full * per_node * (per_node - 1) // 2 + rest * (rest - 1) // 2
    same_node = pod_pairs_on_a_node * per_pod * per_pod
    total = topology.ranks * (topology.ranks - 1) // 2
    return {"same-pod": same_pod, "same-node": same_node, "other-node": total - same_pod - same_node}


def slowest_link(topology: Topology) -> LinkClass | None:
    """The class that sets the pace of a ring; None for one rank."""
    pairs = pairs_by_class(topology)
    order: tuple[LinkClass, ...] = ("other-node", "same-node", "same-pod")
    return next((c for c in order if pairs[c]), None)


def medium(topology: Topology) -> str:
    """What the slowest hop of a ring runs over, in words. Pods of one node over TCP never touch the NIC."""
    link = slowest_link(topology)
    if link is None:
        return "nothing: one rank"
    if link == "same-pod":
        return _same_pod_medium(topology)
    if topology.link == "efa":
        devices = f"{topology.efa_devices_per_pod} EFA a pod"
        return devices if link == "other-node" else f"{devices}, looped through one host"
    if topology.rate_bits_per_s is not None:
        return f"TCP at {topology.rate_bits_per_s / 1e9:g} Gbit/s, dialled"
    return "same-host TCP" if link == "same-node" else "TCP over the NIC"


def _same_pod_medium(topology: Topology) -> str:
    gpu = topology.machine.gpu
    if gpu is None:
        return "loopback of one pod"
    if "shm" in topology.variants or gpu.intra_node_link == "pcie":
        return "shared memory of one pod"
    return "NVLink of one pod"


def ring_rate_gb_per_s(topology: Topology) -> Range:
    """Rate of a ring at its slowest hop, 1e9 bytes a second and direction.

    Network rates of the 100 Gb/s EFA and of plain TCP are those that the seeds' totals imply (4.4-5.2 and
    1.8); the ends are published nccl-tests figures and the line rate.
    """
    link = slowest_link(topology)
    if link == "same-pod" or link is None:
        return _same_pod_rate(topology)
    if topology.link == "efa":
        return _efa_rate(topology)
    return _tcp_rate(topology, same_host=link == "same-node")


def _expectation(
    link_class: LinkClass, pairs: int, expected: tuple[str, ...], forbidden: tuple[str, ...]
) -> LinkExpectation:
    return LinkExpectation(link_class=link_class, pairs=pairs, expected=expected if pairs else (), forbidden=forbidden)


def _same_pod(topology: Topology) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if topology.machine.gpu is None:
        return ("loopback",), ("TCP",)
    network = ("NET/Socket", "NET/Libfabric", "NET/Libfabric+GDRDMA")
    if "shm" in topology.variants or topology.machine.gpu.intra_node_link == "pcie":
        return ("SHM",), ("P2P", "P2P+read", *network)
    if "push" in topology.variants:
        return ("P2P",), ("P2P+read", "SHM", *network)
    if "pull" in topology.variants:
        return ("P2P+read",), ("P2P", "SHM", *network)
    # NCCL's own choice: the receiver reads on A100 over NVLink, the sender writes elsewhere.
    return ("P2P", "P2P+read"), ("SHM", *network)


def _across(topology: Topology) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if topology.machine.gpu is None:
        return ("TCP",), ("loopback",)
    inside = ("P2P", "P2P+read", "SHM")
    if topology.link == "tcp":
        return ("NET/Socket",), (*inside, "NET/Libfabric", "NET/Libfabric+GDRDMA")
    instance = topology.machine.instance_type
    assert instance is not None or topology.pods == 1, "EFA crosses pods on EC2 only"
    if instance is not None and instance.gpudirect_rdma:
        return ("NET/Libfabric+GDRDMA",), (*inside, "NET/Libfabric", "NET/Socket")
    return ("NET/Libfabric", "NET/Libfabric+GDRDMA"), (*inside, "NET/Socket")


def _logging() -> tuple[Variable, ...]:
    return (
        ("NCCL_DEBUG", "INFO", "the log is the proof of the transport"),
        ("NCCL_DEBUG_SUBSYS", "INIT,NET,ENV,GRAPH,TUNING", "never COLL, which would log each call"),
        ("NCCL_DEBUG_FILE", NCCL_LOG_FILES, "one file a process: interleaved lines can't be read"),
    )


def _network(topology: Topology, stock_image: bool) -> tuple[Variable, ...]:
    interface = "^lo,docker,veth,eni" if "hostnet" in topology.variants else "eth0"
    bootstrap = (
        "NCCL_SOCKET_IFNAME",
        interface,
        "the pod's interface; on the host's network all but virtual ones",
    )
    if topology.link != "efa":
        return (("NCCL_NET", "Socket", "no other network can then be chosen"), bootstrap)
    plugin = ("NCCL_NET_PLUGIN", "ofi", "this image's plugin is libnccl-net-ofi.so")
    return (
        ("NCCL_NET", "Libfabric", "without EFA NCCL then fails and doesn't fall back to TCP"),
        *((plugin,) if stock_image else ()),
        ("FI_EFA_USE_HUGE_PAGE", "0", "no huge pages are requested; avoids fork errors"),
        bootstrap,
    )


def _intra_node(topology: Topology) -> tuple[Variable, ...]:
    result: list[Variable] = []
    if "shm" in topology.variants:
        result.append(("NCCL_P2P_DISABLE", "1", "variant shm: GPUs of a pod talk through host memory"))
    else:
        result.append(("NCCL_P2P_LEVEL", "NVL", "stated, so that PCIe never carries P2P unnoticed"))
    if "push" in topology.variants:
        result.append(("NCCL_P2P_READ_ENABLE", "0", "variant push: the sender writes"))
    if "pull" in topology.variants:
        result.append(("NCCL_P2P_READ_ENABLE", "1", "variant pull: the receiver reads"))
    if topology.machine.is_local:
        result.append(("NCCL_NVLS_ENABLE", "0", "NVLink multicast isn't for guests of a shared host"))
        result.append(("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1", "the same, for torch"))
    return tuple(result)


def _tuning(topology: Topology) -> tuple[Variable, ...]:
    if "tuned" not in topology.variants:
        return ()
    reason = "enough flows: four sockets, four threads and eight channels turned 1.90x into 1.12x on one host"
    return (
        ("NCCL_SOCKET_NTHREADS", "4", reason),
        ("NCCL_NSOCKS_PERTHREAD", "4", reason),
        ("NCCL_MIN_NCHANNELS", "8", reason),
    )


def _same_pod_rate(topology: Topology) -> Range:
    gpu = topology.machine.gpu
    if gpu is None:
        # gloo over loopback on a small machine, measured 0.3 to 3.
        return Range(low=0.3, expected=1.2, high=4.0)
    if "shm" in topology.variants and gpu.intra_node_link == "nvlink":
        # Through host memory: at most what the copies give, less where two of them share an uplink.
        _, expected, high = gpu.host_copy_gb_per_s
        return Range(low=min(4.0, 0.2 * expected), expected=0.4 * expected, high=high)
    low, expected, high = gpu.intra_node_gb_per_s
    return Range(low=low, expected=expected, high=high)


def _efa_rate(topology: Topology) -> Range:
    instance = topology.machine.instance_type
    assert instance is not None
    devices = topology.efa_devices_per_pod
    line = instance.card_zero_gbps / 8 * devices
    return Range(
        low=min(0.5 * line, 3.0 * devices),
        expected=min(0.85 * line, 4.8 * devices),
        high=min(0.95 * line, 11.0 * devices),
    )


def _tcp_rate(topology: Topology, *, same_host: bool) -> Range:
    if topology.rate_bits_per_s is not None:
        # tbf on a veth gave 198.6 Mbit/s of TCP payload where 200 were set.
        dialled = topology.rate_bits_per_s / 8e9
        return Range(low=0.9 * dialled, expected=0.97 * dialled, high=dialled)
    tuned = "tuned" in topology.variants
    if same_host:
        if topology.machine.gpu is None:
            return Range(low=0.3, expected=1.0, high=4.0)
        # Over a host's own veths, one flow 1 to 3.4 by the host's cores; on four H200 all flows gave about 5
        # untuned and over 20 tuned (docs/diary, 2026-11-21).
        return Range(low=3.0, expected=10.0, high=28.0) if tuned else Range(low=1.0, expected=2.5, high=6.0)
    instance = topology.machine.instance_type
    assert instance is not None
    line = instance.card_zero_gbps / 8
    cap = _flow_cap_gb_per_s(topology)
    return Range(low=min(0.5 * line, cap.low), expected=min(0.85 * line, cap.expected), high=min(0.95 * line, cap.high))


def _flow_cap_gb_per_s(topology: Topology) -> Range:
    """What a few TCP flows carry: EC2 caps one at 5 Gb/s, in a placement group at 10."""
    if {"tuned", "hostnet"} & set(topology.variants):
        # Four sockets and threads, or NCCL's sixteen where it sees the AWS device on the host's network.
        return Range(low=1.8, expected=5.0, high=11.0)
    if "pg" in topology.variants:
        return Range(low=1.0, expected=2.8, high=7.0)
    return Range(low=1.0, expected=1.8, high=3.6)
