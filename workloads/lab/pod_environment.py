"""A container's environment and command line, as the kubelet resolves them."""

import re
from collections.abc import Callable, Mapping

from workloads.lab.documents import Manifest, References
from workloads.lab.pod_fields import refuse_unknown
from workloads.lab.pod_program import Surroundings

# What containerd gives where an image says nothing (runc's default).
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_MAP_ENTRY = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace $(NAME) by its value and $$ by $; an unknown name stays as it is (Kubernetes' rule)."""
    return _REFERENCE.sub(lambda found: "$" if found[0] == "$$" else variables.get(found[1], found[0]), text)


def environment(pod: Manifest, container: Manifest, surroundings: Surroundings, bin_folder: str) -> dict[str, str]:
    """The container's variables; `bin_folder` comes first on PATH.

    Raises ValueError for a source that isn't known, a missing key, and a variable that pod and node set
    differently.
    """
    where = f"pod {pod['metadata']['name']}: env of {container['name']}"
    base = {"PATH": _SYSTEM_PATH, "HOME": "/tmp/home", "HOSTNAME": _hostname(pod), **surroundings.environment}
    own: dict[str, str] = {}
    for entry in container.get("env") or ():
        value = _value(pod, entry, {**base, **own}, surroundings, f"{where}: {entry['name']}")
        if value is not None:
            own[entry["name"]] = value
    for name in sorted(own.keys() & surroundings.environment.keys()):
        if own[name] != surroundings.environment[name]:
            raise ValueError(
                f"{where}: {name} is {own[name]!r} in the pod and {surroundings.environment[name]!r} by the "
                "sandbox; leave it to one of them"
            )
    merged = {**base, **own}
    return {**merged, "PATH": f"{bin_folder}:{merged['PATH']}"}


def _hostname(pod: Manifest) -> str:
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])


def _value(
    pod: Manifest, entry: Manifest, known: Mapping[str, str], surroundings: Surroundings, where: str
) -> str | None:
    refuse_unknown(entry, frozenset({"name", "value", "valueFrom"}), where)
    source = entry.get("valueFrom")
    if not source:
        return expand(entry.get("value") or "", known)
    kind, reference = next(iter(source.items()))
    references = surroundings.references
    if kind == "fieldRef":
        return _field(pod, reference["fieldPath"], surroundings, where)
    if kind == "configMapKeyRef":
        return _key(references, "config map", reference, where)
    if kind == "secretKeyRef":
        return _key(references, "secret", reference, where)
    raise ValueError(f"{where}: valueFrom.{kind} isn't known to the sandbox; use a value, a fieldRef or a key")


def _key(references: References, kind: str, reference: Manifest, where: str) -> str | None:
    maps = references.config_maps if kind == "config map" else references.secrets
    content = maps.get(reference["name"], {})
    if reference["key"] in content:
        return content[reference["key"]].decode()
    if reference.get("optional"):
        return None
    raise ValueError(f"{where}: {kind} {reference['name']} with key {reference['key']} isn't among the documents")


def _field(pod: Manifest, path: str, surroundings: Surroundings, where: str) -> str:
    metadata = pod["metadata"]
    if found := _MAP_ENTRY.fullmatch(path):
        return str((metadata.get(found[1]) or {}).get(found[2], ""))
    fields: dict[str, Callable[[], str]] = {
        "metadata.name": lambda: metadata["name"],
        "metadata.namespace": lambda: metadata.get("namespace", "default"),
        "metadata.uid": lambda: metadata.get("uid", metadata["name"]),
        "spec.nodeName": lambda: pod["spec"].get("nodeName", surroundings.node),
        "spec.serviceAccountName": lambda: pod["spec"].get("serviceAccountName", "default"),
        "status.podIP": lambda: surroundings.link.address if surroundings.link else "127.0.0.1",
        "status.hostIP": lambda: "127.0.0.1",
    }
    if path not in fields:
        raise ValueError(f"{where}: fieldPath {path} isn't known to the sandbox; it knows {', '.join(fields)}")
    return fields[path]()
