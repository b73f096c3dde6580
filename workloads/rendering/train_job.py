"""TrainJob: one run. Its spec is immutable, so a repeated run is a new attempt and a new name."""

from workloads.planning.plan import NAMESPACE, Plan
from workloads.planning.resources import PodResources
from workloads.rendering.bindings import HF_TOKEN_KEY, Bindings, Document
from workloads.rendering.mounts import CONFIG_PATH, checkpoint_folder, python_path
from workloads.rendering.names import topology_labels
from workloads.rendering.quantities import cpu, gib
from workloads.rendering.stopping import SHUTDOWN_VARIABLE, shutdown_s

RESTART_LABEL = "jobset.sigs.k8s.io/restart-attempt"
"""On each pod, by JobSet: how often the gang was started over before."""

_RENDEZVOUS_TIMEOUT_S = 1800
"""torchrun waits 600 s for its peers; nodes that boot and pull a large image can lie further apart."""


def train_job(plan: Plan, bindings: Bindings) -> Document:
    """The TrainJob of the plan's attempt. No TTL: Trainer 2.3 remakes a failed job whose JobSet went."""
    trainer: Document = {
        "numNodes": plan.topology.pods,
        "numProcPerNode": plan.topology.gpus_per_pod,
        "command": _command(plan),
        "args": _arguments(plan),
        "env": environment(plan, bindings),
        "resourcesPerNode": resources(plan.resources),
    }
    if plan.image.reference is not None:
        trainer = {"image": plan.image.reference, **trainer}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {
            "name": plan.job_name,
            "namespace": NAMESPACE,
            "labels": {
                **topology_labels(plan.topology),
                "topolab.dev/attempt": str(plan.config.attempt),
            },
        },
        "spec": {
            "runtimeRef": {
                "apiGroup": "trainer.kubeflow.org",
                "kind": "ClusterTrainingRuntime",
                "name": plan.topology.name,
            },
            "activeDeadlineSeconds": plan.deadline_s,
            "trainer": trainer,
        },
    }


def resources(wanted: PodResources) -> Document:
    """resourcesPerNode: memory, GPUs and EFA devices equal in both; no CPU limit, which would throttle."""
    devices = {"nvidia.com/gpu": wanted.gpus, "vpc.amazonaws.com/efa": wanted.efa_devices}
    hard = {
        "memory": gib(wanted.memory_gib),
        **{name: str(number) for name, number in devices.items() if number > 0},
    }
    return {"requests": {"cpu": cpu(wanted.cpu_millis), **hard}, "limits": hard.copy()}


def environment(plan: Plan, bindings: Bindings) -> list[Document]:
    """The plan's variables in their order, then those that only the cluster or a late-bound value fills."""
    variables: list[Document] = [{"name": v.name, "value": v.value} for v in plan.environment]
    path = python_path(plan)
    if path is not None:
        variables.append({"name": "PYTHONPATH", "value": path})
    variables += [
        {"name": SHUTDOWN_VARIABLE, "value": str(shutdown_s(plan))},
        {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "TOPOLAB_RECORDS", "value": bindings.records_uri},
    ]
    checkpoints = checkpoint_folder(plan)
    if checkpoints is not None:
        variables.append({"name": "TOPOLAB_CHECKPOINTS", "value": checkpoints})
    if plan.restarts:
        starts = {"fieldRef": {"fieldPath": f"metadata.labels['{RESTART_LABEL}']"}}
        variables.append({"name": "TOPOLAB_RESTARTS", "valueFrom": starts})
    if plan.needs_hf_token:
        secret = {"name": bindings.hf_token_secret, "key": HF_TOKEN_KEY}
        variables.append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": secret}})
    return variables


def _command(plan: Plan) -> list[str]:
    """torchrun reads PET_*; `python` of a local machine need not have its scripts on PATH."""
    return ["torchrun"] if plan.image.reference is not None else ["python", "-m", "torch.distributed.run"]


def _arguments(plan: Plan) -> list[str]:
    launcher = ["--tee", "3", "--log-dir", "/tmp/topolab/logs"]
    if plan.image.reference is not None:
        launcher += ["--rdzv-conf", f"timeout={_RENDEZVOUS_TIMEOUT_S}"]
    return [*launcher, "-m", "trainer", "--config", CONFIG_PATH]
