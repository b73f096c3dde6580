"""What a program left in a cluster: nothing, after `pulumi destroy`."""

from collections.abc import Iterator
from pathlib import Path

from tests.e2e.cluster.api import Api, ApiError, Document

SYSTEM_NAMESPACES = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
_GROUPS = ("trainer.kubeflow.org", "jobset.x-k8s.io", "karpenter.sh", "karpenter.k8s.aws")
"""API groups of what the program installs."""
_CORE = (
    "/api/v1/namespaces",
    "/api/v1/pods",
    "/api/v1/persistentvolumes",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/secrets",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/daemonsets",
    "/apis/batch/v1/jobs",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
)
_SYSTEM_SECRETS = frozenset({"bootstrap.kubernetes.io/token"})


def census(kubeconfig: Path) -> list[str]:
    """Kind/namespace/name of every object that the bare control plane doesn't have, sorted.

    Custom resources, helm releases (as `HelmRelease`), namespaces, pods and what makes them, secrets, volumes,
    webhook configurations, custom resource definitions. Nodes aren't counted: they are the cloud's.
    """
    return sorted(_found(Api.of(kubeconfig)))


def _found(api: Api) -> Iterator[str]:
    for path in (*_CORE, *_custom(api)):
        try:
            listing = api.get(path)
        except ApiError as error:
            # A kind that has gone since the kinds were listed has no objects.
            if error.status != 404:
                raise
            continue
        kind = str(listing["kind"]).removesuffix("List")
        for one in listing["items"]:
            if not _is_systems(kind, one):
                yield _named(kind, one)


def _custom(api: Api) -> list[str]:
    """Collections of the custom resources of our groups, served or not yet gone."""
    definitions = api.items("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    return [
        f"/apis/{one['spec']['group']}/{version['name']}/{one['spec']['names']['plural']}"
        for one in definitions
        if one["spec"]["group"] in _GROUPS
        for version in one["spec"]["versions"]
        if version["storage"] and version["served"]
    ]


def _is_systems(kind: str, one: Document) -> bool:
    return (kind == "Namespace" and one["metadata"]["name"] in SYSTEM_NAMESPACES) or (
        kind == "Secret" and one.get("type") in _SYSTEM_SECRETS
    )


def _named(kind: str, one: Document) -> str:
    if kind == "Secret" and one.get("type") == "helm.sh/release.v1":
        labels = one["metadata"]["labels"]
        return f"HelmRelease/{one['metadata']['namespace']}/{labels['name']} v{labels['version']} {labels['status']}"
    metadata = one["metadata"]
    return "/".join(part for part in (kind, metadata.get("namespace"), metadata["name"]) if part)
