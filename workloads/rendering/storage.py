"""Volumes that outlive a pod: FSx for Lustre, and the folder of a local machine's records."""

from workloads.planning.plan import NAMESPACE
from workloads.rendering.bindings import Document, LateBound
from workloads.rendering.names import platform_labels

FSX_CLAIM = "fsx"
RECORDS_CLAIM = "records"
FSX_CAPACITY_GIB = 1200
"""Smallest file system of SCRATCH_2 and PERSISTENT_2 on SSD (FSx for Lustre user guide)."""

_RECORDS_CAPACITY_GIB = 10
# Nothing measures a hostPath volume: the claim only has to ask for no more than this.


def fsx_documents(
    *, file_system_id: LateBound, dns_name: LateBound, mount_name: LateBound
) -> tuple[Document, Document]:
    """PersistentVolume and claim of a file system that exists already.

    Static: a volume that the CSI driver makes would be unknown to Pulumi, and its controller needs rights.
    """
    source = {
        "mountOptions": ["flock", "noatime"],
        "csi": {
            "driver": "fsx.csi.aws.com",
            "volumeHandle": file_system_id,
            "volumeAttributes": {"dnsname": dns_name, "mountname": mount_name},
        },
    }
    return _volume(FSX_CLAIM, FSX_CAPACITY_GIB, source), _claim(FSX_CLAIM, FSX_CAPACITY_GIB)


def records_documents(folder: str) -> tuple[Document, Document]:
    """PersistentVolume and claim of a folder of the host; for local machines, whose records are file:."""
    source = {"hostPath": {"path": folder, "type": "DirectoryOrCreate"}}
    return _volume(RECORDS_CLAIM, _RECORDS_CAPACITY_GIB, source), _claim(RECORDS_CLAIM, _RECORDS_CAPACITY_GIB)


def _volume(name: str, capacity_gib: int, source: Document) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{NAMESPACE}-{name}", "labels": platform_labels()},
        "spec": {
            "capacity": {"storage": f"{capacity_gib}Gi"},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            **source,
        },
    }


def _claim(name: str, capacity_gib: int) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": platform_labels()},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            # Empty, not absent: absent means the cluster's default class, which would make a new volume.
            "storageClassName": "",
            "volumeName": f"{NAMESPACE}-{name}",
            "resources": {"requests": {"storage": f"{capacity_gib}Gi"}},
        },
    }
