"""Rendered Kubernetes objects as resources, each under its own kind's type."""

from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from workloads.rendering.bindings import Document

_core = kubernetes.core.v1
_CORE: dict[str, Callable[..., pulumi.CustomResource]] = {
    "Namespace": _core.Namespace,
    "ServiceAccount": _core.ServiceAccount,
    "ConfigMap": _core.ConfigMap,
    "PersistentVolume": _core.PersistentVolume,
    "PersistentVolumeClaim": _core.PersistentVolumeClaim,
}
_ARGUMENTS = {
    "data": "data",
    "spec": "spec",
    "automountServiceAccountToken": "automount_service_account_token",
}
"""Fields of these kinds beside apiVersion, kind and metadata, and what Pulumi's classes call them."""


def place(name: str, document: Document, opts: pulumi.ResourceOptions) -> pulumi.CustomResource:
    """The resource of a rendered object; a field that no class takes is a fault of ours."""
    metadata: dict[str, Any] = document["metadata"]
    fields = {k: v for k, v in document.items() if k not in {"apiVersion", "kind", "metadata"}}
    if document["apiVersion"] == "v1":
        arguments = {_ARGUMENTS[key]: value for key, value in fields.items()}
        return _CORE[document["kind"]](name, metadata=metadata, opts=opts, **arguments)
    assert fields.keys() == {"spec"}, f"{document['kind']} has {sorted(fields)}, not only a spec"
    return kubernetes.apiextensions.CustomResource(
        name,
        api_version=document["apiVersion"],
        kind=document["kind"],
        metadata=metadata,
        spec=fields["spec"],
        opts=opts,
    )


def connect(
    opts: pulumi.ResourceOptions,
    *,
    kubeconfig: pulumi.Input[str] | None,
    context: str | None = None,
) -> kubernetes.Provider:
    """The provider that every object goes through; no kubeconfig: the ambient one.

    Configuration is changed in place: replaced, it would be missing while the old run's pods still look for it.
    An object that is there already is refused, as by default since pulumi-kubernetes 4.29: with `upsertExistingObjects`
    a resource that was renamed without an alias would be taken over and then deleted under its old name (issue 2926),
    and a TrainJob that another stack left would pass for this run's. After a kill one `pulumi up` may take over what
    the last one made: PULUMI_K8S_UPSERT_EXISTING_OBJECTS=true (README).
    """
    return kubernetes.Provider(
        "kubernetes",
        kubeconfig=kubeconfig,
        context=context,
        enable_server_side_apply=True,
        enable_config_map_mutable=True,
        enable_secret_mutable=True,
        opts=opts,
    )


def of_kinds(documents: list[Document], *kinds: str) -> list[Document]:
    """The documents of these kinds, in their order."""
    return [d for d in documents if d["kind"] in kinds]
