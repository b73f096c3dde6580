"""Plan: topology x run x platform, checked and complete."""

from dataclasses import dataclass
from typing import Literal

from trainer.config import TrainConfig
from workloads.catalogue.topologies import Topology
from workloads.planning.prediction import Prediction
from workloads.planning.spec import Platform

NAMESPACE = "topolab"


@dataclass(frozen=True, kw_only=True)
class PodResources:
    """What one pod asks for (requests equal limits for memory, GPUs and EFA devices)."""

    cpu_millis: int
    memory_gib: int
    gpus: int
    efa_devices: int
    shm_gib: int


@dataclass(frozen=True, kw_only=True)
class EnvVariable:
    """One environment variable of the trainer's container, and why it is set."""

    name: str
    value: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Image:
    """What the pods run. `mounted`: the trainer comes from a ConfigMap and locked wheels are added."""

    reference: str | None
    """None on a local machine: its own python runs."""
    mounted: bool


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that rendering, the lab and the Pulumi program need to know of one arm."""

    topology: Topology
    platform: Platform
    job_name: str
    config: TrainConfig
    deepspeed: dict[str, object]
    resources: PodResources
    environment: tuple[EnvVariable, ...]
    image: Image
    deadline_s: int
    needs_hf_token: bool
    capacity: Literal["onDemand", "spot"]
    prediction: Prediction

    @property
    def nodes(self) -> int:
        """Nodes that the pods occupy."""
        return self.topology.nodes
