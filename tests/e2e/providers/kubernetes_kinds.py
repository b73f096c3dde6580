"""What the stand-in knows of each kind: its type token, what replaces it, what is awaited. Pure.

From pulumi-kubernetes: provider/pkg/provider/diff.go, pkg/await/awaiters.go, pkg/metadata/overrides.go.
"""

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from tests.e2e.providers.serving import RefusedError

RELEASE = "kubernetes:helm.sh/v3:Release"
AUTONAMED = "pulumi.com/autonamed"
SKIP_AWAIT = "pulumi.com/skipAwait"
WAIT_FOR = "pulumi.com/waitFor"
TIMEOUT_SECONDS = "pulumi.com/timeoutSeconds"
PROPAGATION = "pulumi.com/deletionPropagationPolicy"
PATCH_FORCE = "pulumi.com/patchForce"

_ADMISSION = frozenset({"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"})
CLUSTER_SCOPED = frozenset({"Namespace", "PersistentVolume"}) | _ADMISSION
_CORE = frozenset({"ServiceAccount", "ConfigMap", "Secret", "PersistentVolumeClaim", "Namespace", "PersistentVolume"})
_BUILT_IN = {"core": _CORE, "admissionregistration.k8s.io": _ADMISSION}
"""The built-in kinds of the program. Another one needs a line here and, where it is awaited, in kubernetes_waits."""
_IDENTITY = ("metadata.name", "metadata.namespace")
_VOLUME_SOURCES = ("csi", "hostPath", "local", "nfs")
_SECRET_FIELDS = ("type", "stringData", "data")
_CONFIG_FIELDS = ("data", "binaryData")


def api_of(token: str) -> tuple[str, str]:
    """apiVersion and kind of a type token; RefusedError for a type that the stand-in doesn't know."""
    package, _, rest = token.partition(":")
    version, _, kind = rest.rpartition(":")
    group = version.rpartition("/")[0]
    if package != "kubernetes" or not kind:
        raise RefusedError(f"the stand-in kubernetes has no type {token}")
    if kind in _BUILT_IN.get(group, ()):
        return version.removeprefix("core/"), kind
    # A group with a dot that isn't Kubernetes' own comes from a CRD; helm.sh is pulumi-kubernetes' own.
    if "." in group and not group.endswith(".k8s.io") and group != "helm.sh":
        return version, kind
    raise RefusedError(
        f"the stand-in kubernetes has no type {token}: it knows {', '.join(sorted(_CORE | _ADMISSION))}, "
        "custom resources and helm.v3.Release; see kubernetes_kinds"
    )


def replacing(document: Mapping[str, Any], *, mutable_config_maps: bool, mutable_secrets: bool) -> tuple[str, ...]:
    """Fields whose change the real provider answers by a replacement. Of a custom resource: name and namespace."""
    immutable = document.get("immutable") is True
    match document.get("apiVersion"), document.get("kind"):
        case "v1", "Secret" if immutable or not mutable_secrets:
            return (*_IDENTITY, *_SECRET_FIELDS)
        case "v1", "ConfigMap" if immutable or not mutable_config_maps:
            return (*_IDENTITY, *_CONFIG_FIELDS)
        case "v1", "PersistentVolume":
            return (*_IDENTITY, *(f"spec.{source}" for source in _VOLUME_SOURCES))
        case "v1", "PersistentVolumeClaim":
            return (*_IDENTITY, "spec")
    return _IDENTITY


def replaced_by(paths: Iterable[str], fields: Iterable[str]) -> frozenset[str]:
    """Those of the changed property paths that lie at, in or around one of the fields."""
    wanted = tuple(fields)
    return frozenset(path for path in paths if any(_touches(path, name) for name in wanted))


def _touches(path: str, name: str) -> bool:
    return path == name or path.startswith((f"{name}.", f"{name}[")) or name.startswith(f"{path}.")


def autonamed(name: str, random_seed: bytes) -> str:
    """The name of an object that the program gives none: 8 hexadecimal digits behind the resource's."""
    digits = hashlib.sha256(random_seed).hexdigest()[:8] if random_seed else secrets.token_hex(4)
    return f"{name}-{digits}"


def annotation(document: Mapping[str, Any], key: str) -> str:
    """An annotation of an object; empty where there is none."""
    return str(((document.get("metadata") or {}).get("annotations") or {}).get(key, ""))


def limit_s(document: Mapping[str, Any], timeout_s: float, default_s: float) -> float:
    """How long to wait: custom timeouts, else the annotation, else the kind's default."""
    stated = annotation(document, TIMEOUT_SECONDS)
    return timeout_s or (float(stated) if stated.isdigit() else default_s)


def propagation(document: Mapping[str, Any]) -> str:
    """How a deletion reaches what an object owns; foreground unless the object says otherwise."""
    stated = annotation(document, PROPAGATION).lower()
    return {"orphan": "Orphan", "background": "Background"}.get(stated, "Foreground")


def subject(document: Mapping[str, Any]) -> str:
    """Kind/namespace/name, as the operation log and faults call an object; Kind/name where there is no namespace."""
    metadata = document["metadata"]
    return "/".join(filter(None, (document["kind"], metadata.get("namespace"), metadata["name"])))
