"""Machines: an EC2 instance type, or a computer that the lab runs on.

Local machines are named `cpu` (ranks without a GPU) or `<gpu>x<count>` (`h200x4`). GPUs that the catalogue
doesn't know can still be used: the lab passes what `nvidia-smi` reports, and what it doesn't report stays
unknown.
"""

import re
from dataclasses import dataclass, replace

from workloads.catalogue.gpus import GPUS, Gpu, IntraNodeLink
from workloads.catalogue.instances import INSTANCE_TYPES, InstanceType


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What pods are placed on. `node_gpus` is 0 on `cpu`, where the GPUs of a topology's name are ranks."""

    slug: str
    instance_type: InstanceType | None
    gpu: Gpu | None
    node_gpus: int

    @property
    def is_local(self) -> bool:
        """True for the lab's machines, which cost nothing and have no node pool."""
        return self.instance_type is None

    @property
    def name(self) -> str:
        """Instance type's own name, or the slug of a local machine."""
        return self.slug if self.instance_type is None else self.instance_type.name

    @property
    def efa_devices(self) -> int:
        """EFA devices of one node."""
        return 0 if self.instance_type is None else self.instance_type.efa_devices


CPU = Machine(slug="cpu", instance_type=None, gpu=None, node_gpus=0)

NAMED_MACHINES: tuple[Machine, ...] = (
    *(Machine(slug=t.slug, instance_type=t, gpu=t.gpu, node_gpus=t.gpus) for t in INSTANCE_TYPES),
    CPU,
    *(Machine(slug=f"h200x{n}", instance_type=None, gpu=GPUS[3], node_gpus=n) for n in (1, 2, 4, 8)),
)

_LOCAL_GPUS = re.compile(r"(?P<gpu>[a-z][a-z0-9]*?)x(?P<count>[1-9][0-9]?)")


def find_machine(slug: str, detected: Machine | None = None) -> Machine | None:
    """The machine of that name; `detected` is what the lab found on this computer. None: no such machine."""
    if detected is not None and detected.slug == slug:
        return detected
    named = next((m for m in NAMED_MACHINES if m.slug == slug), None)
    return named or _local_gpu_machine(slug)


def detected_machine(gpu_names: list[str], memory_mib: int, *, nvlink: bool) -> Machine:
    """The machine that `nvidia-smi` shows: its GPUs' names (one a GPU) and the memory of one in MiB.

    A GPU that the catalogue doesn't know gets a slug of its name and an unknown peak rate. `nvlink`: whether
    every pair of GPUs is joined by it.
    """
    if not gpu_names:
        return CPU
    known = next((g for g in GPUS if gpu_names[0] == g.nvidia_smi_name), None)
    link: IntraNodeLink = "nvlink" if nvlink else "pcie"
    gpu = replace(known or _unknown_gpu(gpu_names[0], memory_mib), memory_mib=memory_mib, intra_node_link=link)
    return Machine(slug=f"{gpu.slug}x{len(gpu_names)}", instance_type=None, gpu=gpu, node_gpus=len(gpu_names))


def _local_gpu_machine(slug: str) -> Machine | None:
    match = _LOCAL_GPUS.fullmatch(slug)
    gpu = next((g for g in GPUS if match and g.slug == match["gpu"]), None)
    if match is None or gpu is None:
        return None
    return Machine(slug=slug, instance_type=None, gpu=gpu, node_gpus=int(match["count"]))


def _unknown_gpu(name: str, memory_mib: int) -> Gpu:
    slug = re.sub(r"[^a-z0-9]", "", name.lower().removeprefix("nvidia").strip()) or "gpu"
    # Bandwidths of an unknown card: the range from a desktop PCIe slot to a current NVLink.
    return Gpu(
        name=name,
        slug=slug,
        nvidia_smi_name=name,
        memory_mib=memory_mib,
        peak_flops_per_s=None,
        hbm_gb_per_s=300,
        intra_node_link="pcie",
        intra_node_gb_per_s=(2, 10, 400),
        host_copy_gb_per_s=(2, 12, 55),
    )
