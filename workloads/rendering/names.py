"""Names and labels of what is rendered, for documents, selectors, cost allocation and `kubectl -l`."""

from workloads.catalogue.instances import InstanceType
from workloads.catalogue.topologies import Topology

SERVICE_ACCOUNT = "trainer"
"""The pods' own, so that rights on the records bucket can be given to it alone (EKS Pod Identity)."""
TOPOLOGY_LABEL = "topolab.dev/topology"
ANCESTOR_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
"""On a runtime's job template, value `trainer`: Kubeflow Trainer applies the TrainJob to that job alone."""

_COMMON = {"app.kubernetes.io/name": "trainer", "app.kubernetes.io/part-of": "topolab"}


def gpu_pool_name(instance_type: InstanceType, *, placement_group: bool) -> str:
    """Name of both the EC2NodeClass and the NodePool; a placement group has one of each to itself."""
    return f"gpu-{instance_type.slug}" + ("-pg" if placement_group else "")


def config_map_name(topology: Topology) -> str:
    """ConfigMap of config.json."""
    return f"{topology.name}-config"


def code_map_name(topology: Topology) -> str:
    """ConfigMap of the trainer's code."""
    return f"{topology.name}-code"


def platform_labels() -> dict[str, str]:
    """Labels of what outlives a topology."""
    return {"app.kubernetes.io/part-of": _COMMON["app.kubernetes.io/part-of"]}


def topology_labels(topology: Topology) -> dict[str, str]:
    """Labels of what belongs to one topology, its pods included: EKS splits cost by pod labels."""
    return {**_COMMON, TOPOLOGY_LABEL: topology.name, "topolab.dev/machine": topology.machine.name}
