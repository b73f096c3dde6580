"""Which fields of a Pod the sandbox acts on, which mean nothing to processes, and which it refuses.

A field in none of the lists is refused by name: a pod that runs otherwise than it says proves nothing.
"""

from collections.abc import Mapping
from typing import Any

from workloads.lab.documents import Manifest

_POD = frozenset(
    {
        "hostname",
        "subdomain",
        "containers",
        "initContainers",
        "volumes",
        "restartPolicy",
        "terminationGracePeriodSeconds",
        "activeDeadlineSeconds",
        "nodeName",
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "shareProcessNamespace",
        "securityContext",
    }
)

# The scheduler, the service account and the cluster's DNS have done their part, or have none here.
_POD_WITHOUT_EFFECT = frozenset(
    {
        "schedulerName",
        "nodeSelector",
        "tolerations",
        "affinity",
        "topologySpreadConstraints",
        "priority",
        "priorityClassName",
        "preemptionPolicy",
        "serviceAccount",
        "serviceAccountName",
        "automountServiceAccountToken",
        "enableServiceLinks",
        "dnsPolicy",
        "imagePullSecrets",
        "schedulingGates",
    }
)

_CONTAINER = frozenset({"name", "command", "args", "env", "workingDir", "resources", "volumeMounts", "securityContext"})

# There is no image: the pod sees the host's own programs. Logs go to a file, so no termination message is
# kept.
_CONTAINER_WITHOUT_EFFECT = frozenset(
    {"image", "imagePullPolicy", "ports", "terminationMessagePath", "terminationMessagePolicy"}
)

# Would be a claim on the machine that the sandbox can't keep, unless the value asks for nothing.
_ONLY_EMPTY = frozenset({"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"})

# Rights that an unprivileged process has or doesn't miss. IPC_LOCK is what EFA wants, and there is none here.
_SECURITY_WITHOUT_EFFECT = frozenset({"capabilities", "allowPrivilegeEscalation"})

# Shares of the machine that are the plan's business: the sandbox sets no limit of its own (no cgroup).
_RESOURCES_WITHOUT_LIMIT = frozenset({"cpu", "memory", "ephemeral-storage"})
GPU_RESOURCE = "nvidia.com/gpu"


def check_fields(pod: Manifest) -> None:
    """Raise ValueError naming the first field of the Pod that the sandbox can't honour."""
    spec = pod["spec"]
    where = f"pod {pod['metadata']['name']}: spec"
    refuse_unknown(spec, _POD | _POD_WITHOUT_EFFECT, where)
    for field in sorted(_ONLY_EMPTY & spec.keys()):
        if spec[field]:
            raise ValueError(f"{where}.{field}: the sandbox gives each pod its own; remove it")
    refuse_unknown(spec.get("securityContext") or {}, frozenset(), f"{where}.securityContext")
    if spec.get("restartPolicy") != "Never":
        given = spec.get("restartPolicy", "Always (the default)")
        raise ValueError(f"{where}.restartPolicy: {given}; the sandbox runs a pod once, which is `Never`")
    if len(spec["containers"]) != 1:
        names = ", ".join(container["name"] for container in spec["containers"])
        raise ValueError(f"{where}.containers: {names}; the sandbox runs pods of one container")
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            _check_container(container, f"{where}.{kind}[{container['name']}]")


def refuse_unknown(mapping: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    """Raise ValueError naming a key that isn't known, unless it holds nothing."""
    for key in sorted(mapping.keys() - known):
        if mapping[key] not in (None, {}, [], ()):
            raise ValueError(f"{where}.{key}: the sandbox doesn't know this field; remove it")


def gpus_asked(container: Manifest) -> int:
    """GPUs that a container asks for."""
    return int(_limits(container).get(GPU_RESOURCE, 0))


def _check_container(container: Manifest, where: str) -> None:
    refuse_unknown(container, _CONTAINER | _CONTAINER_WITHOUT_EFFECT, where)
    if not container.get("command"):
        raise ValueError(f"{where}.command: missing; the sandbox has no image whose entry point it could take")
    security = container.get("securityContext") or {}
    if security.get("privileged"):
        raise ValueError(f"{where}.securityContext.privileged: the sandbox gives no privileges; remove it")
    refuse_unknown(security, _SECURITY_WITHOUT_EFFECT | {"privileged"}, f"{where}.securityContext")
    refuse_unknown(container.get("resources") or {}, frozenset({"requests", "limits"}), f"{where}.resources")
    refuse_unknown(_limits(container), _RESOURCES_WITHOUT_LIMIT | {GPU_RESOURCE}, f"{where}.resources.limits")


def _limits(container: Manifest) -> dict[str, Any]:
    resources = container.get("resources") or {}
    return {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
