"""What no pod of the namespace may ask for, whoever makes it: a policy that the API server itself holds.

`lint` says the same of what this program renders; this says it of everything else that gets into the namespace, a
debugging container among it. The expressions are CEL.
"""

from workloads.planning.plan import NAMESPACE
from workloads.rendering.bindings import Document
from workloads.rendering.names import TOPOLOGY_LABEL, platform_labels

POLICY = f"{NAMESPACE}-pods"
CAPABILITY = "IPC_LOCK"
"""The one that EFA needs: libfabric locks the memory that it registers."""
_KIND = "admissionregistration.k8s.io/v1"

_CONTAINERS = (
    "object.spec.containers + object.spec.?initContainers.orValue([]) + object.spec.?ephemeralContainers.orValue([])"
)
_VARIANTS = f"object.metadata.?labels[?'{TOPOLOGY_LABEL}'].orValue('').split('-')"


def pod_policy() -> tuple[Document, Document]:
    """ValidatingAdmissionPolicy and its binding."""
    policy = {
        "apiVersion": _KIND,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": POLICY, "labels": platform_labels()},
        "spec": {
            # A rule that can't be read lets nothing through.
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["pods", "pods/ephemeralcontainers"],
                    }
                ],
            },
            "variables": [
                {"name": "containers", "expression": _CONTAINERS},
                {"name": "variants", "expression": _VARIANTS},
            ],
            "validations": [{"expression": rule, "message": message} for rule, message in _rules()],
        },
    }
    binding = {
        "apiVersion": _KIND,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": POLICY, "labels": platform_labels()},
        "spec": {"policyName": POLICY, "validationActions": ["Deny"]},
    }
    return policy, binding


def _rules() -> list[tuple[str, str]]:
    """What must be true of a pod, and what is said where it isn't."""
    return [
        (
            "variables.containers.all(c, !c.?securityContext.?privileged.orValue(false))",
            "privileged shows a pod every EFA device of its host; leave it out",
        ),
        (
            "variables.containers.all(c, c.?securityContext.?capabilities.?add.orValue([])"
            f".all(one, one == '{CAPABILITY}'))",
            f"no capability but {CAPABILITY} may be added; leave the others out",
        ),
        (
            "object.spec.?volumes.orValue([]).all(v, !has(v.hostPath))",
            "hostPath mounts a folder of the host; use a claim",
        ),
        ("!object.spec.?hostPID.orValue(false)", "hostPID shows the processes of the host; leave it out"),
        _only_in("hostNetwork", "hostnet"),
        _only_in("hostIPC", "hostipc"),
    ]


def _only_in(field: str, variant: str) -> tuple[str, str]:
    return (
        f"!object.spec.?{field}.orValue(false) || '{variant}' in variables.variants",
        f"{field} is for topologies of variant {variant} alone; leave it out",
    )
