"""Faults of rendered documents that no schema sees, or that Kubernetes admits and a run pays for.

Each rule is a function from one document to sentences: which object, which field and value, what to do.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from workloads.planning.checks import JOB_NAME_LIMIT
from workloads.rendering.bindings import Document
from workloads.rendering.lint_together import lint_together, pod_specs
from workloads.rendering.names import ANCESTOR_LABEL
from workloads.rendering.quantities import number

CONFIG_MAP_LIMIT_BYTES = 2**20
"""The API server's limit on a ConfigMap's data."""

_RESERVED = frozenset({"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"})
_TOKEN = re.compile(r"hf_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16}")
_SECRET_NAME = re.compile(r"(TOKEN|SECRET|PASSWORD|ACCESS_KEY)$")

_Path = tuple[str, ...]
_Rule = Callable[[Document], Iterator[str]]


def lint(documents: Iterable[Document]) -> list[str]:
    """Sentences about every fault of the documents, alone or together; empty: none known."""
    listed = list(documents)
    alone = [
        f"{document['kind']}/{document['metadata']['name']}: {sentence}"
        for document in listed
        for rule in _RULES
        for sentence in rule(document)
    ]
    return [*alone, *lint_together(listed)]


def _walk(value: object, path: _Path = ()) -> Iterator[tuple[_Path, object]]:
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, (*path, str(key)))
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _walk(inner, (*path, str(index)))


def _mappings(document: Document) -> Iterator[tuple[str, Document]]:
    for path, value in _walk(document):
        if isinstance(value, dict):
            yield ".".join(path), value


def _hugepages(document: Document) -> Iterator[str]:
    for where, mapping in _mappings(document):
        for key in mapping:
            if str(key).startswith("hugepages-"):
                yield f"{where}.{key}: Karpenter knows no huge pages and would never find a node; remove it"


def _devices_in_limits_alone(document: Document) -> Iterator[str]:
    for where, mapping in _mappings(document):
        limits, requests = mapping.get("limits"), mapping.get("requests")
        if not isinstance(limits, dict) or document["kind"] == "NodePool":
            continue
        for name in sorted(key for key in limits if "/" in key):
            asked = (requests or {}).get(name)
            if asked != limits[name]:
                yield f"{where}: {name} is {asked} in requests and {limits[name]} in limits; make them equal"


def _requests_above_limits(document: Document) -> Iterator[str]:
    """A TrainJob with them is admitted; its pods are not, each time that the Job makes them."""
    for where, mapping in _mappings(document):
        limits, requests = mapping.get("limits"), mapping.get("requests")
        if isinstance(limits, dict) and isinstance(requests, dict):
            for name in sorted(name for name in requests if name in limits and "/" not in name):
                if number(requests[name]) > number(limits[name]):
                    yield f"{where}: {name} asks for {requests[name]} above its limit {limits[name]}; lower it"


def _privileged(document: Document) -> Iterator[str]:
    for where, mapping in _mappings(document):
        if mapping.get("privileged") is True:
            yield f"{where}.privileged: true shows a pod every EFA device of its host; remove it"


def _host_path(document: Document) -> Iterator[str]:
    if document["kind"] == "PersistentVolume":
        return
    for where, mapping in _mappings(document):
        if "hostPath" in mapping:
            yield f"{where}.hostPath: a pod mounts no folder of its host; use a claim"


def _host_namespaces(document: Document) -> Iterator[str]:
    variants = document["metadata"]["name"].split("-")
    for where, mapping in _mappings(document):
        for field, variant in (("hostNetwork", "hostnet"), ("hostIPC", "hostipc")):
            if mapping.get(field) is True and variant not in variants:
                yield f"{where}.{field}: only a topology of variant {variant} has it; remove it"
        for field in ("hostPID", "shareProcessNamespace"):
            if mapping.get(field) is True:
                yield f"{where}.{field}: the job doesn't need it; remove it"


def _time_to_live(document: Document) -> Iterator[str]:
    for where, mapping in _mappings(document):
        if "ttlSecondsAfterFinished" in mapping:
            yield (
                f"{where}.ttlSecondsAfterFinished: Trainer 2.3 makes a failed job anew once its JobSet is "
                "gone, without end; remove it"
            )


def _replicated_jobs(document: Document) -> Iterator[Document]:
    if document["kind"] == "ClusterTrainingRuntime":
        yield from document["spec"]["template"]["spec"]["replicatedJobs"]


def _ancestor(document: Document) -> Iterator[str]:
    for job in _replicated_jobs(document):
        if job["template"].get("metadata", {}).get("labels", {}).get(ANCESTOR_LABEL) != "trainer":
            yield f"replicatedJobs[{job['name']}]: numNodes is ignored without {ANCESTOR_LABEL}; set it"


def _ranks(document: Document) -> Iterator[str]:
    """Trainer tells torchrun of its peers only where the runtime says that it is torch's."""
    if document["kind"] == "ClusterTrainingRuntime" and "torch" not in document["spec"].get("mlPolicy", {}):
        yield "mlPolicy.torch is missing: torchrun would get no PET_ variables, each pod would train alone; set it"
    if document["kind"] == "TrainJob" and (nodes := document["spec"]["trainer"].get("numNodes", 0)) < 1:
        yield f"spec.trainer.numNodes is {nodes}: a run has at least one pod; set it"


def _mounts(document: Document) -> Iterator[str]:
    for pod in pod_specs(document):
        volumes = {volume["name"] for volume in pod.get("volumes") or ()}
        for container in (*(pod.get("initContainers") or ()), *pod["containers"]):
            for mount in container.get("volumeMounts") or ():
                if mount["name"] not in volumes:
                    yield f"container {container['name']} mounts {mount['name']}, which is no volume; add it"


def _restarts(document: Document) -> Iterator[str]:
    if document["kind"] != "ClusterTrainingRuntime":
        return
    restarts = document["spec"]["template"]["spec"].get("failurePolicy", {}).get("maxRestarts")
    if not isinstance(restarts, int):
        yield "failurePolicy.maxRestarts is missing: JobSet's own default isn't ours to guess; set it"
    elif restarts and not any(pod.get("volumes") and _claims(pod) for pod in pod_specs(document)):
        yield "failurePolicy.maxRestarts isn't 0 and no claim is mounted: each start would begin anew; set 0"
    for job in _replicated_jobs(document):
        where, spec = f"replicatedJobs[{job['name']}]", job["template"]["spec"]
        if spec.get("backoffLimit") != 0:
            yield f"{where}.backoffLimit isn't 0: the default makes six more pods; set it"
        if spec["template"]["spec"].get("restartPolicy") != "Never":
            yield f"{where}.restartPolicy isn't Never: JobSet's default is OnFailure; set it"


def _claims(pod: Document) -> list[str]:
    return [v["name"] for v in pod["volumes"] if "persistentVolumeClaim" in v]


def _counts_in_runtime(document: Document) -> Iterator[str]:
    for job in _replicated_jobs(document):
        for container in job["template"]["spec"]["template"]["spec"]["containers"]:
            given = container.get("resources", {})
            names = {name for part in ("requests", "limits") for name in given.get(part, {}) if "/" in name}
            for name in sorted(names):
                yield f"container {container['name']}: {name} would be merged with the TrainJob's; remove it"


def _node_labels(document: Document) -> Iterator[str]:
    """Karpenter hands a pool's labels to the kubelet, which starts with few of Kubernetes' own domain."""
    if document["kind"] != "NodePool":
        return
    for label in document["spec"]["template"].get("metadata", {}).get("labels", {}):
        domain = label.partition("/")[0]
        if re.search(r"(^|\.)(kubernetes|k8s)\.io$", domain) and not domain.endswith("node.kubernetes.io"):
            yield f"label {label}: the kubelet doesn't start with it; use another domain"


def _deadline(document: Document) -> Iterator[str]:
    if document["kind"] == "TrainJob" and "activeDeadlineSeconds" not in document["spec"]:
        yield "spec.activeDeadlineSeconds is missing: a gang that lacks a node would wait for ever; set it"


def _job_name(document: Document) -> Iterator[str]:
    name = document["metadata"]["name"]
    if document["kind"] == "TrainJob" and len(name) > JOB_NAME_LIMIT:
        yield f"the name has {len(name)} characters, pods' host names leave room for {JOB_NAME_LIMIT}"


def _variables(document: Document) -> Iterator[str]:
    for where, mapping in _mappings(document):
        variables = mapping.get("env")
        if not isinstance(variables, list):
            continue
        names = [variable["name"] for variable in variables]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"{where}.env: {name} stands twice; keep one"
        for variable in variables:
            yield from _variable(f"{where}.env", variable)


def _variable(where: str, variable: Document) -> Iterator[str]:
    name = variable["name"]
    if name in _RESERVED:
        yield f"{where}: {name} is Trainer's own to set; remove it"
    if "value" in variable and "valueFrom" in variable:
        yield f"{where}: {name} has both value and valueFrom; keep one"
    if "value" in variable and _SECRET_NAME.search(name):
        yield f"{where}: {name} is given in the clear; use secretKeyRef"


def _secrets(document: Document) -> Iterator[str]:
    if document["kind"] == "Secret":
        yield "a Secret's value would stand in the rendered files; make it elsewhere and refer to its name"
    for path, value in _walk(document):
        if isinstance(value, str) and _TOKEN.search(value):
            yield f"{'.'.join(path)}: holds what looks like a token; use secretKeyRef"


def _config_map_size(document: Document) -> Iterator[str]:
    if document["kind"] != "ConfigMap":
        return
    size = sum(len(key) + len(text.encode()) for key, text in document["data"].items())
    if size > CONFIG_MAP_LIMIT_BYTES:
        yield f"data has {size} bytes, the API server takes {CONFIG_MAP_LIMIT_BYTES}; mount it from an image"


_RULES: tuple[_Rule, ...] = (
    _hugepages,
    _devices_in_limits_alone,
    _requests_above_limits,
    _privileged,
    _host_path,
    _host_namespaces,
    _time_to_live,
    _ancestor,
    _ranks,
    _mounts,
    _restarts,
    _counts_in_runtime,
    _node_labels,
    _deadline,
    _job_name,
    _variables,
    _secrets,
    _config_map_size,
)
