"""Where pods go: which nodes take them, and on how many nodes they stand."""

from workloads.catalogue.topologies import Topology
from workloads.rendering.bindings import Document
from workloads.rendering.names import TOPOLOGY_LABEL, gpu_pool_name

_HOSTNAME = "kubernetes.io/hostname"


def node_choice(topology: Topology) -> Document:
    """nodeSelector and tolerations of the pod spec; none on a local machine, where any node will do."""
    instance_type = topology.machine.instance_type
    if instance_type is None:
        return {}
    pool = gpu_pool_name(instance_type, placement_group="pg" in topology.variants)
    return {
        "nodeSelector": {
            "node.kubernetes.io/instance-type": instance_type.name,
            # Nodes inside and outside the placement group are of one type: only the pool tells them apart.
            "karpenter.sh/nodepool": pool,
        },
        # The second taint is the seeds': our pools don't set it, foreign EFA nodes often do.
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoSchedule"}
            for key in ("nvidia.com/gpu", "vpc.amazonaws.com/efa")
        ],
    }


def spread(topology: Topology) -> Document:
    """affinity of the pod spec: holds the pods to the number of nodes that the plan states.

    One pod a node: required anti-affinity. All on one node: required affinity to their own kind, which
    Kubernetes waives for the first pod because it matches its own term. Several on each of several nodes:
    preferred affinity fills a node before the next is taken, and GPUs or EFA devices cap each at its share;
    no required term can count pods, so there the verdict's node count is the proof.
    """
    if topology.pods == 1:
        return {}
    if topology.pods_per_node == 1:
        return _affinity("podAntiAffinity", required=True, topology=topology)
    return _affinity("podAffinity", required=topology.nodes == 1, topology=topology)


def _affinity(kind: str, *, required: bool, topology: Topology) -> Document:
    term: Document = {
        "labelSelector": {"matchLabels": {TOPOLOGY_LABEL: topology.name}},
        "topologyKey": _HOSTNAME,
    }
    if required:
        return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    weighted = {"weight": 100, "podAffinityTerm": term}
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}}
