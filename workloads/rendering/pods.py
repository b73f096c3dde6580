"""TrainJob and runtime to Pods, as Kubeflow Trainer 2.3, JobSet 0.12 and the Job controller make them.

Read in their sources: Trainer pkg/runtime/framework/plugins/{torch,jobset} and pkg/runtime/core, JobSet
pkg/controllers/jobset_controller (labelAndAnnotateObject) and pkg/webhooks/pod_webhook, Kubernetes 1.35
pkg/controller/job and pkg/registry/batch/job/strategy. The API server's defaults (a port's protocol, a policy
left out) and what admission adds to any pod are not part of this: a real Pod has these fields over and above.
"""

import copy
import hashlib

from workloads.rendering.bindings import Document
from workloads.rendering.names import ANCESTOR_LABEL

LIVE_ONLY: tuple[tuple[str, ...], ...] = (
    # Given by the API server.
    ("metadata", "uid"),
    ("metadata", "creationTimestamp"),
    ("metadata", "resourceVersion"),
    ("metadata", "generation"),
    ("metadata", "managedFields"),
    ("metadata", "ownerReferences"),
    # A real suffix is random; ours follows from the name, so that a rendering is the same each time.
    ("metadata", "name"),
    # Taken off again when the Job has counted the pod.
    ("metadata", "finalizers"),
    # UIDs of the Job and the JobSet.
    ("metadata", "labels", "controller-uid"),
    ("metadata", "labels", "batch.kubernetes.io/controller-uid"),
    ("metadata", "labels", "jobset.sigs.k8s.io/jobset-uid"),
    ("metadata", "annotations", "jobset.sigs.k8s.io/jobset-uid"),
    # The scheduler's choice, and everything after it.
    ("spec", "nodeName"),
    ("status",),
)
"""Fields of a Pod that only a live controller can know, as paths; a comparison leaves them out."""

_MASTER_PORT = 29500
_COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
_PRIORITY = "jobset.sigs.k8s.io/priority"
"""JobSet's webhook repeats the pod's priority here; it is 0, because no runtime of ours names a class."""


def pods(trainjob: Document, runtime: Document, restarts: int = 0) -> list[Document]:
    """The Pods of the job, in the order of their completion index, after the gang was started over so often.

    ValueError where the two don't belong together, or the job uses what isn't merged here.
    """
    _refuse(trainjob, runtime)
    job = _replicated_job(runtime)
    template = copy.deepcopy(job["template"]["spec"]["template"])
    template["spec"] = _merged_spec(template["spec"], trainjob)
    number = trainjob["spec"]["trainer"]["numNodes"]
    return [_pod(trainjob, template, index, restarts) for index in range(number)]


def _refuse(trainjob: Document, runtime: Document) -> None:
    spec, name = trainjob["spec"], trainjob["metadata"]["name"]
    if spec["runtimeRef"]["name"] != runtime["metadata"]["name"]:
        raise ValueError(
            f"TrainJob {name} names the runtime {spec['runtimeRef']['name']}, not "
            f"{runtime['metadata']['name']}; give the runtime that it names"
        )
    for field in ("runtimePatches", "initializer"):
        if spec.get(field):
            raise ValueError(f"TrainJob {name}: spec.{field} isn't merged into pods here; remove it")


def _replicated_job(runtime: Document) -> Document:
    jobs: list[Document] = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    name = runtime["metadata"]["name"]
    if [job["name"] for job in jobs] != ["node"] or jobs[0].get("replicas", 1) != 1:
        raise ValueError(f"runtime {name}: one replicated job `node` with one replica is needed")
    labels = jobs[0]["template"].get("metadata", {}).get("labels", {})
    if labels.get(ANCESTOR_LABEL) != "trainer":
        raise ValueError(
            f"runtime {name}: the job template lacks the label {ANCESTOR_LABEL}: trainer, without which "
            "numNodes and the PET variables are ignored; add it"
        )
    return jobs[0]


def _merged_spec(spec: Document, trainjob: Document) -> Document:
    containers = [_merged_container(container, trainjob) for container in spec["containers"]]
    initial = [_with_completion_index(container) for container in spec.get("initContainers", [])]
    return {
        **spec,
        **({"initContainers": initial} if initial else {}),
        "containers": [_with_completion_index(container) for container in containers],
        "subdomain": trainjob["metadata"]["name"],
    }


def _merged_container(container: Document, trainjob: Document) -> Document:
    if container["name"] != "node":
        return container
    trainer = trainjob["spec"]["trainer"]
    given = {key: trainer[key] for key in ("image", "command", "args") if trainer.get(key)}
    variables = [*trainer.get("env", []), *_torchrun_variables(trainjob)]
    return {
        **container,
        **given,
        "env": _upserted(container.get("env", []), variables),
        "ports": [*container.get("ports", []), {"containerPort": _MASTER_PORT}],
        "resources": _merged_resources(container.get("resources", {}), trainer.get("resourcesPerNode", {})),
    }


def _torchrun_variables(trainjob: Document) -> list[Document]:
    """What the torch plugin adds, in its order; torchrun reads PET_<option>."""
    name, trainer = trainjob["metadata"]["name"], trainjob["spec"]["trainer"]
    rank = {"fieldRef": {"fieldPath": f"metadata.annotations['{_COMPLETION_INDEX}']"}}
    return [
        {"name": "PET_NNODES", "value": str(trainer["numNodes"])},
        {"name": "PET_NPROC_PER_NODE", "value": str(trainer["numProcPerNode"])},
        {"name": "PET_NODE_RANK", "valueFrom": rank},
        {"name": "PET_MASTER_ADDR", "value": f"{name}-node-0-0.{name}"},
        {"name": "PET_MASTER_PORT", "value": str(_MASTER_PORT)},
    ]


def _upserted(variables: list[Document], more: list[Document]) -> list[Document]:
    """A variable of the same name keeps its place and takes the later value."""
    by_name = {variable["name"]: variable for variable in variables}
    by_name.update({variable["name"]: variable for variable in more})
    return list(by_name.values())


def _merged_resources(base: Document, over: Document) -> Document:
    """Since Trainer 2.3 requests and limits merge key by key."""
    parts = {part: {**base.get(part, {}), **over.get(part, {})} for part in ("limits", "requests")}
    return {part: values for part, values in parts.items() if values}


def _with_completion_index(container: Document) -> Document:
    index = {"fieldRef": {"fieldPath": f"metadata.labels['{_COMPLETION_INDEX}']"}}
    variables = [*container.get("env", []), {"name": "JOB_COMPLETION_INDEX", "valueFrom": index}]
    return {**container, "env": variables}


def _pod(trainjob: Document, template: Document, index: int, restarts: int) -> Document:
    namespace = trainjob["metadata"].get("namespace", "default")
    job = f"{trainjob['metadata']['name']}-node-0"
    prefix = f"{job}-{index}-"
    metadata = template.get("metadata", {})
    both = {**_jobset_marks(trainjob, namespace, job, restarts), _COMPLETION_INDEX: str(index)}
    own = {"batch.kubernetes.io/job-name": job, "job-name": job, _PRIORITY: "0"}
    labels = {**both, **own}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": prefix + hashlib.sha256(prefix.encode()).hexdigest()[:5],
            "generateName": prefix,
            "namespace": namespace,
            "labels": {**metadata.get("labels", {}), **labels},
            "annotations": {**metadata.get("annotations", {}), **both},
        },
        "spec": {**copy.deepcopy(template["spec"]), "hostname": f"{job}-{index}"},
    }


def _jobset_marks(trainjob: Document, namespace: str, job: str, restarts: int) -> dict[str, str]:
    """JobSet's labels, which it repeats as annotations: one replicated job of one replica in one group."""
    marks = {
        "jobset-name": trainjob["metadata"]["name"],
        "replicatedjob-name": "node",
        "restart-attempt": str(restarts),
        "replicatedjob-replicas": "1",
        "global-replicas": "1",
        "job-index": "0",
        "job-key": hashlib.sha1(f"{namespace}/{job}".encode(), usedforsecurity=False).hexdigest(),
        "job-global-index": "0",
        "group-name": "default",
        "group-replicas": "1",
        "job-group-index": "0",
    }
    return {f"jobset.sigs.k8s.io/{key}": value for key, value in marks.items()}
