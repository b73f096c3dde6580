"""CPU, memory, GPUs and EFA devices of one pod.

Each GPU brings an equal share of its node, so ranks have the same CPU and memory in every arm of one instance
type, whatever the pods.
"""

from dataclasses import dataclass

from workloads.catalogue.topologies import Topology

_CPU_SHARE = 0.90
"""The rest is for DaemonSets and the kubelet's own pods."""
_MEMORY_SHARE = 0.85
"""Huge pages that an AMI preallocates are not in the scheduler's figures."""
_SHM_GIB = 64
"""The seeds' /dev/shm; it counts against the pod's memory, so never more than half of it."""

_LOCAL_CPU_RANK_MILLIS = 500
_LOCAL_CPU_RANK_GIB = 3.0
_LOCAL_GPU_RANK_MILLIS = 4000
_LOCAL_GPU_RANK_GIB = 48.0


@dataclass(frozen=True, kw_only=True)
class PodResources:
    """What one pod asks for (requests equal limits for memory, GPUs and EFA devices)."""

    cpu_millis: int
    memory_gib: int
    gpus: int
    efa_devices: int
    shm_gib: int


def cpus_per_rank(topology: Topology) -> float:
    """CPUs of one rank."""
    instance = topology.machine.instance_type
    if instance is None:
        return (_LOCAL_GPU_RANK_MILLIS if topology.machine.gpu else _LOCAL_CPU_RANK_MILLIS) / 1000
    return int(instance.allocatable_cpu_millis * _CPU_SHARE / instance.gpus) / 1000


def memory_gib_per_rank(topology: Topology) -> float:
    """Host memory of one rank in GiB, /dev/shm included."""
    instance = topology.machine.instance_type
    if instance is None:
        return _LOCAL_GPU_RANK_GIB if topology.machine.gpu else _LOCAL_CPU_RANK_GIB
    return float(int(instance.allocatable_memory_mib / 1024 * _MEMORY_SHARE / instance.gpus))


def pod_resources(topology: Topology) -> PodResources:
    """Resources of one pod of the topology."""
    ranks = topology.gpus_per_pod
    memory = int(memory_gib_per_rank(topology) * ranks)
    return PodResources(
        cpu_millis=int(cpus_per_rank(topology) * ranks * 1000),
        memory_gib=memory,
        gpus=ranks if topology.machine.gpu is not None else 0,
        efa_devices=topology.efa_devices_per_pod,
        shm_gib=1 if topology.machine.gpu is None else min(_SHM_GIB, memory // 2),
    )
