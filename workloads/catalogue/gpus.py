"""Accelerators: memory, peak rate and the bandwidths that a prediction starts from.

Peaks are dense bf16 from NVIDIA's datasheets (L40S: 362.05; the 181 and 733 of other tables are the L40's
dense and the L40S's sparse figures). `sustained_share` is the range of the share of that peak that matrix
products of a training step reach, from published matmul ceilings (A100 271 of 312, H100/H200 794 of 989)
down to what unfused code gets; the planner carries both ends.
"""

from dataclasses import dataclass
from typing import Literal

IntraNodeLink = Literal["nvlink", "pcie"]


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One accelerator. Bandwidths are per direction and GPU, in 1e9 bytes a second."""

    name: str
    slug: str
    nvidia_smi_name: str
    memory_mib: int
    peak_flops_per_s: float | None
    hbm_gb_per_s: float
    intra_node_link: IntraNodeLink
    intra_node_gb_per_s: tuple[float, float, float]
    """Low, expected, high rate of a ring over the GPUs of one node."""
    host_copy_gb_per_s: tuple[float, float, float]
    """Low, expected, high rate of one GPU's host-device copies when all GPUs copy at once."""


L40S = Gpu(
    name="L40S",
    slug="l40s",
    nvidia_smi_name="NVIDIA L40S",
    memory_mib=45776,
    peak_flops_per_s=362.05e12,
    hbm_gb_per_s=864,
    intra_node_link="pcie",
    # PCIe Gen4 x16 gives 31 on paper and about 25 in practice; NCCL stages through shared memory there.
    intra_node_gb_per_s=(4, 6, 20),
    host_copy_gb_per_s=(12, 24, 25),
)
A100_40 = Gpu(
    name="A100-SXM4-40GB",
    slug="a100",
    nvidia_smi_name="NVIDIA A100-SXM4-40GB",
    memory_mib=40960,
    peak_flops_per_s=312e12,
    hbm_gb_per_s=1555,
    intra_node_link="nvlink",
    # NV12 gives 300 on paper; published all-reduce bus bandwidth is about 235.
    intra_node_gb_per_s=(150, 200, 235),
    # Two GPUs share one Gen3 x16 uplink of about 12.
    host_copy_gb_per_s=(5, 6, 12),
)
H100 = Gpu(
    name="H100-SXM",
    slug="h100",
    nvidia_smi_name="NVIDIA H100 80GB HBM3",
    memory_mib=81920,
    peak_flops_per_s=989e12,
    hbm_gb_per_s=3350,
    intra_node_link="nvlink",
    intra_node_gb_per_s=(250, 330, 370),
    host_copy_gb_per_s=(12, 24, 50),
)
H200 = Gpu(
    name="H200-SXM",
    slug="h200",
    nvidia_smi_name="NVIDIA H200",
    memory_mib=143771,
    peak_flops_per_s=989e12,
    hbm_gb_per_s=4800,
    intra_node_link="nvlink",
    intra_node_gb_per_s=(250, 330, 396),
    host_copy_gb_per_s=(24, 50, 55),
)

GPUS: tuple[Gpu, ...] = (L40S, A100_40, H100, H200)
