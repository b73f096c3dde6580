"""The config maps, secrets, claims and volumes that a pod names, fetched as the kubelet fetches them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.e2e.cluster.api import Api, ApiError
from workloads.lab.documents import References, look_up


class Missing(Exception):  # noqa: N818 - a state that may pass, and no fault of ours
    """Something that the pod names isn't there; a kubelet waits for it."""


@dataclass(frozen=True)
class Name:
    """One object of the pod's namespace."""

    plural: str
    name: str
    optional: bool = False


def references_of(api: Api, pod: Mapping[str, Any]) -> References:
    """What the pod names; Missing where one isn't there and isn't optional."""
    folder = f"/api/v1/namespaces/{pod['metadata']['namespace']}"
    documents = [found for name in names(pod) if (found := _fetched(api, folder, name)) is not None]
    claims = [document for document in documents if document["kind"] == "PersistentVolumeClaim"]
    return look_up([*documents, *(api.get(f"/api/v1/persistentvolumes/{one['spec']['volumeName']}") for one in claims)])


def names(pod: Mapping[str, Any]) -> list[Name]:
    """Each once, in order."""
    spec = pod["spec"]
    found = [name for volume in spec.get("volumes") or () for name in _of_volume(volume)]
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            found += [name for entry in container.get("env") or () for name in _of_variable(entry)]
    return list(dict.fromkeys(found))


def _of_volume(volume: Mapping[str, Any]) -> Iterator[Name]:
    if source := volume.get("configMap"):
        yield Name("configmaps", source["name"], bool(source.get("optional")))
    if source := volume.get("secret"):
        yield Name("secrets", source["secretName"], bool(source.get("optional")))
    if source := volume.get("persistentVolumeClaim"):
        yield Name("persistentvolumeclaims", source["claimName"])


def _of_variable(entry: Mapping[str, Any]) -> Iterator[Name]:
    source = entry.get("valueFrom") or {}
    if key := source.get("configMapKeyRef"):
        yield Name("configmaps", key["name"], bool(key.get("optional")))
    if key := source.get("secretKeyRef"):
        yield Name("secrets", key["name"], bool(key.get("optional")))


def _fetched(api: Api, folder: str, name: Name) -> dict[str, Any] | None:
    try:
        return api.get(f"{folder}/{name.plural}/{name.name}")
    except ApiError as error:
        if error.status != 404:
            raise
        if name.optional:
            return None
        raise Missing(f"{name.plural} {name.name} isn't there") from error
