"""A plan as Kubernetes objects, in the order in which they can be applied. Plain and repeatable."""

from workloads.planning.plan import NAMESPACE, Plan
from workloads.rendering.admission import pod_policy
from workloads.rendering.bindings import Bindings, Document
from workloads.rendering.gpu_nodes import node_class, node_pool
from workloads.rendering.lint import lint
from workloads.rendering.mounts import CONFIG_FILE, brings_wheels
from workloads.rendering.names import (
    SERVICE_ACCOUNT,
    code_map_name,
    config_map_name,
    platform_labels,
    topology_labels,
)
from workloads.rendering.runtime import training_runtime
from workloads.rendering.storage import fsx_documents, records_documents
from workloads.rendering.train_job import train_job
from workloads.rendering.trainer_code import trainer_files


def documents(plan: Plan, bindings: Bindings) -> list[Document]:
    """Everything of the plan, in apply order."""
    result = [*platform_documents(plan, bindings), *topology_documents(plan, bindings)]
    faults = lint(result)
    assert not faults, faults
    return result


def platform_documents(plan: Plan, bindings: Bindings) -> list[Document]:
    """What outlives the topology: Namespace and what its pods may be, service account, node class and pool, volumes.

    Node class and pool belong to the instance type, so another topology of it finds their nodes warm; a
    local machine has neither.
    """
    return [namespace(), *pod_policy(), service_account(), *_gpu_nodes(plan, bindings), *_storage(plan, bindings)]


def topology_documents(plan: Plan, bindings: Bindings) -> list[Document]:
    """What the topology owns: its ConfigMaps, runtime and TrainJob."""
    code = [code_map(plan)] if plan.image.mounted else []
    return [config_map(plan), *code, training_runtime(plan, bindings), train_job(plan, bindings)]


def namespace() -> Document:
    """The namespace of every run."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": platform_labels()},
    }


def service_account() -> Document:
    """The pods' service account, without a token of the API server."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": SERVICE_ACCOUNT, "namespace": NAMESPACE, "labels": platform_labels()},
        "automountServiceAccountToken": False,
    }


def config_map(plan: Plan) -> Document:
    """The trainer's one file."""
    text = plan.config.model_dump_json(indent=2) + "\n"
    return _config_map(plan, config_map_name(plan.topology), {CONFIG_FILE: text})


def code_map(plan: Plan) -> Document:
    """The trainer's modules, and the lock of its packages where the pods install them."""
    files = trainer_files(with_lock=brings_wheels(plan))
    return _config_map(plan, code_map_name(plan.topology), files)


def _config_map(plan: Plan, name: str, data: dict[str, str]) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": topology_labels(plan.topology)},
        "data": data,
    }


def _gpu_nodes(plan: Plan, bindings: Bindings) -> list[Document]:
    instance_type = plan.topology.machine.instance_type
    if instance_type is None:
        return []
    in_group = "pg" in plan.topology.variants
    zone = plan.platform.zone
    assert zone is not None, "the plan refuses EC2 without a zone"
    return [
        node_class(
            instance_type,
            bindings,
            placement_group=in_group,
            lustre_client=plan.platform.storage.fsx != "none",
            reservation=plan.platform.capacity.id,
        ),
        node_pool(instance_type, placement_group=in_group, zone=zone, capacity=plan.capacity, nodes=plan.nodes),
    ]


def _storage(plan: Plan, bindings: Bindings) -> list[Document]:
    result: list[Document] = []
    if bindings.records_folder is not None:
        result += records_documents(bindings.records_folder)
    if plan.platform.storage.fsx != "none":
        result += fsx_documents(
            file_system_id=bindings.fsx_file_system_id,
            dns_name=bindings.fsx_dns_name,
            mount_name=bindings.fsx_mount_name,
        )
    return result
