"""EC2 instance types that a topology can name.

Sizes and allocatable resources: Karpenter provider AWS v1.14.1, reference/instance-types (generated from the
EC2 API, July 2026). GPUDirect RDMA: platform table of aws-ofi-nccl v1.21.1 (no g6e entry; the seeds' logs
say so too).
"""

from dataclasses import dataclass

from workloads.catalogue.gpus import A100_40, H100, H200, L40S, Gpu


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """An EC2 type with its facts. `network_gbps` counts bits; TCP of a pod uses card 0 alone."""

    name: str
    slug: str
    """As topology names write it: without dot and "arge"."""
    gpus: int
    gpu: Gpu
    efa_devices: int
    network_cards: int
    network_gbps: int
    gpudirect_rdma: bool
    vcpus: int
    memory_gib: int
    nvme_gb: int
    allocatable_cpu_millis: int
    allocatable_memory_mib: int
    quota_code: str
    """EC2 on-demand vCPU quota of the family: L-DB2E81BA for G and VT, L-417A185B for P."""
    spot_quota_code: str
    """The same for spot: L-3819A6DF for G and VT, L-7212CCBC for P4 and older, L-C4BD4855 for P5 (Service Quotas)."""

    @property
    def card_zero_gbps(self) -> float:
        """What one network card carries: the most that plain TCP of a node can have."""
        return self.network_gbps / self.network_cards


INSTANCE_TYPES: tuple[InstanceType, ...] = (
    InstanceType(
        name="g6e.8xlarge", slug="g6e8xl", gpus=1, gpu=L40S, efa_devices=1, network_cards=1, network_gbps=25,
        gpudirect_rdma=False, vcpus=32, memory_gib=256, nvme_gb=900, allocatable_cpu_millis=31850,
        allocatable_memory_mib=239554, quota_code="L-DB2E81BA", spot_quota_code="L-3819A6DF",
    ),
    InstanceType(
        name="g6e.12xlarge", slug="g6e12xl", gpus=4, gpu=L40S, efa_devices=1, network_cards=1, network_gbps=100,
        gpudirect_rdma=False, vcpus=48, memory_gib=384, nvme_gb=3800, allocatable_cpu_millis=47810,
        allocatable_memory_mib=360157, quota_code="L-DB2E81BA", spot_quota_code="L-3819A6DF",
    ),
    InstanceType(
        name="g6e.24xlarge", slug="g6e24xl", gpus=4, gpu=L40S, efa_devices=2, network_cards=2, network_gbps=200,
        gpudirect_rdma=False, vcpus=96, memory_gib=768, nvme_gb=3800, allocatable_cpu_millis=95690,
        allocatable_memory_mib=721682, quota_code="L-DB2E81BA", spot_quota_code="L-3819A6DF",
    ),
    InstanceType(
        name="g6e.48xlarge", slug="g6e48xl", gpus=8, gpu=L40S, efa_devices=4, network_cards=4, network_gbps=400,
        gpudirect_rdma=False, vcpus=192, memory_gib=1536, nvme_gb=7600, allocatable_cpu_millis=191450,
        allocatable_memory_mib=1449132, quota_code="L-DB2E81BA", spot_quota_code="L-3819A6DF",
    ),
    InstanceType(
        name="p4d.24xlarge", slug="p4d24xl", gpus=8, gpu=A100_40, efa_devices=4, network_cards=4,
        network_gbps=400, gpudirect_rdma=True, vcpus=96, memory_gib=1152, nvme_gb=8000,
        allocatable_cpu_millis=95690, allocatable_memory_mib=1082712, quota_code="L-417A185B",
        spot_quota_code="L-7212CCBC",
    ),
    InstanceType(
        name="p5.48xlarge", slug="p548xl", gpus=8, gpu=H100, efa_devices=32, network_cards=32,
        network_gbps=3200, gpudirect_rdma=True, vcpus=192, memory_gib=2048, nvme_gb=30400,
        allocatable_cpu_millis=191450, allocatable_memory_mib=1938410, quota_code="L-417A185B",
        spot_quota_code="L-C4BD4855",
    ),
    InstanceType(
        name="p5en.48xlarge", slug="p5en48xl", gpus=8, gpu=H200, efa_devices=16, network_cards=16,
        network_gbps=3200, gpudirect_rdma=True, vcpus=192, memory_gib=2048, nvme_gb=30400,
        allocatable_cpu_millis=191450, allocatable_memory_mib=1937332, quota_code="L-417A185B",
        spot_quota_code="L-C4BD4855",
    ),
)  # fmt: skip  # one table: a line break per field would hide the columns
