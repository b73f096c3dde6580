"""Versions of everything that is installed, each once, as read in August 2026."""

from dataclasses import dataclass

KUBERNETES = "1.35"
"""Newest whose NVIDIA AMI still has kernel 6.12; Lustre's client on 6.18 (1.36) is unverified."""
GPU_AMI_ALIAS = "al2023@v20260724"
"""Dated: `@latest` would replace nodes at each AMI release, in mid-run."""
STOCK_IMAGE = "public.ecr.aws/deep-learning-containers/pytorch:2.13-cu133-amzn2023"
SEED_IMAGE = "public.ecr.aws/deep-learning-containers/pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-ec2-v1.0"
LUSTRE_SERVER = "2.15"
"""FSx defaults to 2.10 for scratch, which a 2.15 client can't mount."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A Helm chart. `repository` is None where `name` is a whole oci:// reference."""

    name: str
    version: str
    repository: str | None


KARPENTER_CRDS = Chart(name="oci://public.ecr.aws/karpenter/karpenter-crd", version="1.14.1", repository=None)
KARPENTER_NEWEST_KUBERNETES = "1.36"
"""What the pinned Karpenter knows (its compatibility matrix: 1.36 from 1.13 on)."""
KARPENTER = Chart(name="oci://public.ecr.aws/karpenter/karpenter", version="1.14.1", repository=None)
KUBEFLOW_TRAINER = Chart(name="oci://ghcr.io/kubeflow/charts/kubeflow-trainer", version="2.3.0", repository=None)
EFA_DEVICE_PLUGIN = Chart(
    name="aws-efa-k8s-device-plugin", version="v0.5.30", repository="https://aws.github.io/eks-charts"
)
NVIDIA_DEVICE_PLUGIN = Chart(
    name="nvidia-device-plugin", version="0.20.0", repository="https://nvidia.github.io/k8s-device-plugin"
)

CHARTS: tuple[Chart, ...] = (
    KARPENTER_CRDS,
    KARPENTER,
    KUBEFLOW_TRAINER,
    EFA_DEVICE_PLUGIN,
    NVIDIA_DEVICE_PLUGIN,
)


@dataclass(frozen=True, kw_only=True)
class Version:
    """One thing that is installed. `tried`: where it has run; nothing here has run on AWS yet."""

    name: str
    version: str
    tried: str


_PROOF = "its own program and charts, `make e2e`"
_READ = "nowhere: read in its sources"
_STAND_IN = "a chart of ours with the same values, `make e2e`"
_CHART_TRIED = {
    KARPENTER_CRDS: _PROOF,
    KARPENTER: _PROOF,
    KUBEFLOW_TRAINER: f"{_PROOF}; with JobSet 0.12.0, its sub-chart",
    EFA_DEVICE_PLUGIN: _STAND_IN,
    NVIDIA_DEVICE_PLUGIN: _STAND_IN,
}

VERSIONS: tuple[Version, ...] = (
    Version(name="Kubernetes (EKS)", version=KUBERNETES, tried="API server, scheduler, controllers 1.35.4, `make e2e`"),
    Version(name="add-ons of EKS", version="EKS's default, taken once", tried="a fake account's, `make e2e`"),
    Version(name="AMI of system nodes", version="AL2023_x86_64_STANDARD, EKS's newest, taken once", tried=_READ),
    Version(name="AMI of GPU nodes", version=GPU_AMI_ALIAS, tried=_READ),
    *(Version(name=one.name.rsplit("/", 1)[-1], version=one.version, tried=_CHART_TRIED[one]) for one in CHARTS),
    Version(name="image: stock", version=STOCK_IMAGE, tried=_READ),
    Version(name="image of the seeds", version=SEED_IMAGE, tried="the seeds' own jobs, by their logs"),
    Version(name="Lustre server", version=LUSTRE_SERVER, tried=_READ),
)
"""All that `topo catalogue --versions` prints; what raising each does: docs/upgrades.md."""
