"""ClusterTrainingRuntime: all of a pod that a TrainJob can't set. One a topology, named like it.

Rules of Kubeflow Trainer 2.3: the job template's ancestor label makes numNodes and PET_* count; hostIPC,
hostNetwork, dnsPolicy, restartPolicy and init containers can stand here only; GPU and EFA counts must not,
because a TrainJob's resources are merged over the runtime's.
"""

from workloads.catalogue.topologies import Topology
from workloads.planning.plan import Plan
from workloads.rendering.bindings import Bindings, Document
from workloads.rendering.mounts import (
    LOCK_PATH,
    SITE_FOLDER,
    brings_wheels,
    check_mounts,
    python_path,
    trainer_mounts,
    volumes,
    wheel_mounts,
)
from workloads.rendering.names import ANCESTOR_LABEL, SERVICE_ACCOUNT, topology_labels
from workloads.rendering.placement import node_choice, spread
from workloads.rendering.stopping import grace_s

LOCAL_IMAGE = "local/python"
"""What a Pod of a local machine says where Kubernetes wants an image; nothing is pulled."""

_ROOT = 0
"""An added capability isn't effective for any other user, and memlock is 64 KiB without IPC_LOCK.

A user of its own needs one of two things that Kubernetes 1.35 doesn't give a pod: ambient capabilities, or a
higher memlock limit from the container runtime's base spec. A fresh Lustre root takes writes of root alone, too.
"""


_LAST_WORDS = {"terminationMessagePolicy": "FallbackToLogsOnError"}
"""The end of a failed container's log becomes part of the pod's status: it outlives the log, and whoever asks why
a run failed need not find the pod's node."""


def training_runtime(plan: Plan, bindings: Bindings) -> Document:
    """The runtime of the plan's topology."""
    labels = topology_labels(plan.topology)
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {
            "name": plan.topology.name,
            "labels": {**labels, "trainer.kubeflow.org/framework": "torch"},
        },
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {
                "spec": {
                    # JobSet starts the whole gang over, and only as often as the run says: a restart without
                    # checkpoints would hide why it failed and cost money. A pod alone can't rejoin: Job makes none.
                    "failurePolicy": {"maxRestarts": plan.restarts},
                    "replicatedJobs": [{"name": "node", "replicas": 1, "template": _job(plan, bindings)}],
                }
            },
        },
    }


def _job(plan: Plan, bindings: Bindings) -> Document:
    return {
        "metadata": {"labels": {ANCESTOR_LABEL: "trainer"}},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {
                    "labels": topology_labels(plan.topology),
                    "annotations": {"karpenter.sh/do-not-disrupt": "true"},
                },
                "spec": pod_spec(plan, bindings),
            },
        },
    }


def pod_spec(plan: Plan, bindings: Bindings) -> Document:
    """Pod spec of the runtime; image, command, environment and resources of `node` come by the TrainJob."""
    init = _init_containers(plan)
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": grace_s(plan),
        "serviceAccountName": SERVICE_ACCOUNT,
        # The trainer never asks the API server; rights on the bucket come by Pod Identity's own token.
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        **_host_access(plan.topology),
        **node_choice(plan.topology),
        **spread(plan.topology),
        **({"initContainers": init} if init else {}),
        "containers": [
            {
                "name": "node",
                "image": plan.image.reference or LOCAL_IMAGE,
                **_LAST_WORDS,
                "securityContext": _security(plan.topology),
                "volumeMounts": trainer_mounts(plan, bindings),
            }
        ],
        "volumes": volumes(plan, bindings),
    }


def _host_access(topology: Topology) -> Document:
    result: Document = {}
    if "hostnet" in topology.variants:
        # Without this policy a pod on the host's network can't resolve its peers' names.
        result |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    if "hostipc" in topology.variants:
        result |= {"hostIPC": True}
    return result


def _security(topology: Topology) -> Document:
    """Never privileged: a privileged container sees every EFA device of the host, whatever its limit says."""
    context: Document = {"allowPrivilegeEscalation": False}
    if topology.machine.gpu is not None:
        # A container's memlock limit is 64 KiB, and libfabric registers memory: error -12 without this.
        context["capabilities"] = {"add": ["IPC_LOCK"]}
    if topology.machine.instance_type is not None:
        # Stated, so that no image decides it; `trainer/Dockerfile` and `trainer.check_image` say the same.
        context["runAsUser"] = _ROOT
    return context


def _init_containers(plan: Plan) -> list[Document]:
    if plan.image.reference is None:
        return []
    check = {**_init(plan, "check", _check_command(plan)), "volumeMounts": check_mounts(plan)}
    path = python_path(plan)
    if path is not None:
        check["env"] = [{"name": "PYTHONPATH", "value": path}]
    if not brings_wheels(plan):
        return [check]
    return [{**_init(plan, "wheels", _wheels_command()), "volumeMounts": wheel_mounts(plan)}, check]


def _init(plan: Plan, name: str, command: list[str]) -> Document:
    return {
        "name": name,
        "image": plan.image.reference,
        "command": command,
        **_LAST_WORDS,
        "securityContext": _security(plan.topology),
    }


def _wheels_command() -> list[str]:
    """By hash and without resolving, so that every pod of every arm has the same packages."""
    options = "--require-hashes --no-deps --no-cache-dir --disable-pip-version-check --root-user-action=ignore"
    install = ["python", "-m", "pip", "install", *options.split()]
    return [*install, "--target", SITE_FOLDER, "--requirement", LOCK_PATH]


def _check_command(plan: Plan) -> list[str]:
    arguments = ["--efa-devices", str(plan.resources.efa_devices), "--shm-gib", str(plan.resources.shm_gib)]
    plugin = next((v.value for v in plan.environment if v.name == "NCCL_NET_PLUGIN"), None)
    named = [] if plugin is None else ["--net-plugin", plugin]
    return ["python", "-m", "trainer.check_image", *arguments, *named]
