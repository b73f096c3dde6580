"""Faults that only several documents together show: Kubernetes admits each of them, and no pod ever runs."""

from collections.abc import Iterable, Iterator, Sequence

from workloads.catalogue.instances import INSTANCE_TYPES, InstanceType
from workloads.rendering.bindings import Document

POOL_LABEL = "karpenter.sh/nodepool"
"""Karpenter's own, on every node of a pool."""
_INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
_DEVICES = ("nvidia.com/gpu", "vpc.amazonaws.com/efa")


def lint_together(documents: Iterable[Document]) -> list[str]:
    """Sentences about what doesn't fit together; empty: nothing known."""
    listed = list(documents)
    names = {(one["kind"], one["metadata"]["name"]) for one in listed}
    return [
        f"{one['kind']}/{one['metadata']['name']}: {sentence}"
        for one in listed
        for sentence in (*_of_runtime(one, listed, names), *_of_job(one, listed), *_of_pool(one, names))
    ]


def _of_runtime(runtime: Document, documents: Sequence[Document], names: set[tuple[str, str]]) -> Iterator[str]:
    for pod in pod_specs(runtime):
        yield from _references(pod, names)
        pools = [one for one in documents if one["kind"] == "NodePool"]
        if pools:
            yield from _pool(pod, pools)


def pod_specs(document: Document) -> Iterator[Document]:
    """The pods of a runtime; of other kinds none."""
    if document["kind"] == "ClusterTrainingRuntime":
        for job in document["spec"]["template"]["spec"]["replicatedJobs"]:
            yield job["template"]["spec"]["template"]["spec"]


def _references(pod: Document, names: set[tuple[str, str]]) -> Iterator[str]:
    """Secrets apart, whose values are never rendered."""
    wanted = [("ServiceAccount", pod.get("serviceAccountName", "default"))]
    for volume in pod.get("volumes") or ():
        if source := volume.get("configMap"):
            wanted.append(("ConfigMap", source["name"]))
        if source := volume.get("persistentVolumeClaim"):
            wanted.append(("PersistentVolumeClaim", source["claimName"]))
    for kind, name in wanted:
        if (kind, name) not in names:
            yield f"its pods name the {kind} {name}, which isn't among the documents: they would never start; add it"


def _pool(pod: Document, pools: Sequence[Document]) -> Iterator[str]:
    name = (pod.get("nodeSelector") or {}).get(POOL_LABEL)
    pool = next((one for one in pools if one["metadata"]["name"] == name), None)
    if pool is None:
        known = ", ".join(one["metadata"]["name"] for one in pools)
        yield f"nodeSelector {POOL_LABEL} is {name}, the documents make {known}: no node would ever fit; name the pool"
        return
    for taint in pool["spec"]["template"]["spec"].get("taints") or ():
        if not any(_tolerates(one, taint) for one in pod.get("tolerations") or ()):
            yield f"its pods don't tolerate {taint['key']}:{taint['effect']} of pool {name}; add a toleration"
    wanted = pod["nodeSelector"].get(_INSTANCE_TYPE_LABEL)
    made = _instance_types(pool)
    if wanted is not None and wanted not in made:
        yield f"nodeSelector asks for {wanted}, pool {name} makes {', '.join(made)}; make them equal"


def _tolerates(toleration: Document, taint: Document) -> bool:
    """Kubernetes' own rule."""
    same_effect = toleration.get("effect") in (None, "", taint["effect"])
    if toleration.get("operator", "Equal") == "Exists":
        return same_effect and toleration.get("key") in (None, "", taint["key"])
    return same_effect and (toleration.get("key"), toleration.get("value")) == (taint["key"], taint.get("value"))


def _of_job(job: Document, documents: Sequence[Document]) -> Iterator[str]:
    if job["kind"] != "TrainJob":
        return
    trainer = job["spec"]["trainer"]
    name = job["spec"]["runtimeRef"]["name"]
    runtimes = [one for one in documents if one["kind"] == "ClusterTrainingRuntime" and one["metadata"]["name"] == name]
    if not runtimes:
        yield f"spec.runtimeRef names {name}, which isn't among the documents; add it"
    for container in (one for runtime in runtimes for pod in pod_specs(runtime) for one in pod["containers"]):
        if "image" not in trainer and "image" not in container:
            yield f"neither spec.trainer nor container {container['name']} of {name} has an image; give one"
    for pod in (one for runtime in runtimes for one in pod_specs(runtime)):
        yield from _devices(trainer, (pod.get("nodeSelector") or {}).get(_INSTANCE_TYPE_LABEL))


def _devices(trainer: Document, instance_type: str | None) -> Iterator[str]:
    """A request that no node of the type can meet waits for ever, and Karpenter makes nothing for it."""
    given = next((one for one in INSTANCE_TYPES if one.name == instance_type), None)
    if given is None:
        return
    limits = (trainer.get("resourcesPerNode") or {}).get("limits") or {}
    for device in _DEVICES:
        if int(limits.get(device, 0)) > _count(given, device):
            yield f"{limits[device]} {device} a pod, {given.name} has {_count(given, device)}; ask for no more"


def _count(instance_type: InstanceType, device: str) -> int:
    return instance_type.gpus if device == "nvidia.com/gpu" else instance_type.efa_devices


def _of_pool(pool: Document, names: set[tuple[str, str]]) -> Iterator[str]:
    if pool["kind"] != "NodePool":
        return
    reference = pool["spec"]["template"]["spec"]["nodeClassRef"]
    if (reference["kind"], reference["name"]) not in names:
        yield f"nodeClassRef names {reference['kind']} {reference['name']}, which isn't among the documents; add it"


def _instance_types(pool: Document) -> list[str]:
    return [
        value
        for one in pool["spec"]["template"]["spec"]["requirements"]
        if one["key"] == _INSTANCE_TYPE_LABEL and one["operator"] == "In"
        for value in one["values"]
    ]
