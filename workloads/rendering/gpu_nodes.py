"""EC2NodeClass and NodePool of one instance type: what Karpenter launches for its pods."""

from workloads.catalogue.instances import InstanceType
from workloads.catalogue.versions import GPU_AMI_ALIAS
from workloads.planning.spec import CapacityMode
from workloads.rendering.bindings import Bindings, Document
from workloads.rendering.names import gpu_pool_name, platform_labels
from workloads.rendering.stopping import SPOT_NOTICE_S

GPU_TAINT: Document = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
"""One key, this very value: the node feature discovery of NVIDIA's plugin tolerates no other."""

_DRAIN_LIMIT: dict[CapacityMode, str] = {
    "onDemand": "30m",
    "spot": f"{SPOT_NOTICE_S}s",
    "reservation": "30m",
    # Karpenter begins 40 minutes before a block's end, EC2 takes the nodes from 30 minutes on.
    "capacityBlock": "10m",
}
"""Bounds a drain, which a do-not-disrupt pod would hold up for ever.

Karpenter deletes such a pod when what is left of this time equals the pod's own grace. On spot both are the
notice, so SIGTERM comes with the notice; with more, EC2 would take the node first.
"""

_CAPACITY_TYPE: dict[CapacityMode, str] = {
    "onDemand": "on-demand",
    "spot": "spot",
    # Reserved alone: a node beside the reservation would cost twice.
    "reservation": "reserved",
    "capacityBlock": "reserved",
}

_LUSTRE_USER_DATA = """\
#!/bin/bash
# The AMI has no Lustre client, and the CSI driver brings no kernel module.
if dnf install -y lustre-client && modprobe lustre; then
  echo "topolab: lustre client ready" | tee /dev/console
else
  echo "topolab: lustre client missing, mounts of FSx will fail" | tee /dev/console
fi
"""


def node_class(
    instance_type: InstanceType,
    bindings: Bindings,
    *,
    placement_group: bool,
    lustre_client: bool,
    reservation: str | None,
) -> Document:
    """EC2NodeClass of the instance type, in or outside the cluster placement group.

    `reservation`: id of the capacity reservation or block that its nodes are launched into, if any.

    A Pulumi-owned profile rather than `role`: a profile that Karpenter makes can be left behind at destroy.
    """
    spec: Document = {
        "amiSelectorTerms": [{"alias": GPU_AMI_ALIAS}],
        "instanceProfile": bindings.instance_profile,
        "subnetSelectorTerms": [{"id": bindings.subnet_id}],
        "securityGroupSelectorTerms": [{"id": bindings.security_group_id}],
        # EC2 refuses a public address on a launch with several network interfaces.
        "associatePublicIPAddress": False,
        # NVMe as the kubelet's storage; without it Karpenter leaves NVMe out of its arithmetic.
        "instanceStorePolicy": "RAID0",
        "blockDeviceMappings": [_root_volume()],
        "networkInterfaces": _network_interfaces(instance_type),
    }
    if placement_group:
        spec["placementGroupSelector"] = {"name": bindings.placement_group}
    if reservation is not None:
        spec["capacityReservationSelectorTerms"] = [{"id": reservation}]
    if bindings.tags:
        spec["tags"] = dict(bindings.tags)
    if lustre_client:
        spec["userData"] = _LUSTRE_USER_DATA
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": _metadata(instance_type, placement_group=placement_group),
        "spec": spec,
    }


def node_pool(
    instance_type: InstanceType,
    *,
    placement_group: bool,
    zone: str,
    capacity: CapacityMode,
    nodes: int,
) -> Document:
    """NodePool of the instance type in one zone, at most that many nodes."""
    metadata = _metadata(instance_type, placement_group=placement_group)
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": metadata,
        "spec": {
            "template": {
                # NVIDIA's device plugin looks for this label where nothing discovers features.
                "metadata": {"labels": {"nvidia.com/gpu.present": "true"}},
                "spec": {
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws",
                        "kind": "EC2NodeClass",
                        "name": metadata["name"],
                    },
                    # The default of 720 h is forceful: it would end a run whatever the pod says.
                    "expireAfter": "Never",
                    "terminationGracePeriod": _DRAIN_LIMIT[capacity],
                    "taints": [dict(GPU_TAINT)],
                    "requirements": _requirements(instance_type, zone, capacity),
                },
            },
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                # Long enough for the next arm to find its nodes warm.
                "consolidateAfter": "10m",
                # All at once: each empty node costs money, and only empty ones are taken.
                "budgets": [{"nodes": "100%"}],
            },
            "limits": {"nodes": str(nodes), "nvidia.com/gpu": str(nodes * instance_type.gpus)},
        },
    }


def _metadata(instance_type: InstanceType, *, placement_group: bool) -> Document:
    name = gpu_pool_name(instance_type, placement_group=placement_group)
    return {"name": name, "labels": platform_labels()}


def _root_volume() -> Document:
    # Karpenter's own default is 20 GiB, less than one deep learning image unpacked.
    return {
        "deviceName": "/dev/xvda",
        "ebs": {
            "volumeSize": "200Gi",
            "volumeType": "gp3",
            "iops": 6000,
            "throughput": 500,
            "encrypted": True,
            "deleteOnTermination": True,
        },
    }


def _network_interfaces(instance_type: InstanceType) -> list[Document]:
    """AWS's layout: addresses on card 0 alone, one EFA-only device a card.

    Stated, because Karpenter otherwise attaches EFA only for a pod that asks: a node warmed by a TCP arm
    could then never serve an EFA arm, and the EFA plugin crashes on it.
    """
    address = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
    efa = [
        {"networkCardIndex": card, "deviceIndex": 1 if card == 0 else 0, "interfaceType": "efa-only"}
        for card in range(instance_type.efa_devices)
    ]
    return [address, *efa]


def _requirements(instance_type: InstanceType, zone: str, capacity: CapacityMode) -> list[Document]:
    values = {
        "node.kubernetes.io/instance-type": instance_type.name,
        "topology.kubernetes.io/zone": zone,
        "karpenter.sh/capacity-type": _CAPACITY_TYPE[capacity],
        "kubernetes.io/arch": "amd64",
    }
    return [{"key": key, "operator": "In", "values": [value]} for key, value in values.items()]
