"""A live object seen through the inputs that made it, and who manages its fields. Pure.

As the real provider does (pruneLiveState, fixCSAFieldManagers): drift shows in the fields that the program sets.
"""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from tests.e2e.providers.values import Secret, opened

FIELD_MANAGER = "__fieldManager"
CREATOR = "pulumi-kubernetes"
"""Field manager of a create; the update that follows takes its fields over (pulumi-kubernetes #4278)."""
_SERVERS_OWN = frozenset(
    {"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields",
     "resourceVersion", "uid", "selfLink"}
)  # fmt: skip
_TAKEN_OVER = frozenset(
    {("kubectl", "Apply"), ("kubectl", "Update"), ("before-first-apply", "Update"), (CREATOR, "Update")}
)
"""Whose fields an update makes its own; those of anybody else are a conflict."""


def bare(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The object that inputs ask for: opened, without nulls and what only the server sets."""
    document: dict[str, Any] = _without_nulls(opened(inputs))
    metadata = {key: value for key, value in document.get("metadata", {}).items() if key not in _SERVERS_OWN}
    return {**{key: value for key, value in document.items() if not key.startswith("__")}, "metadata": metadata}


def seen(live: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs as the live object has them; a field that it has lost is absent."""
    document = bare(inputs)
    found = opened(live)
    if found.get("kind") == "Secret" and "stringData" in document:
        found = {**found, "stringData": _decoded(found.get("data") or {})}
    pruned: dict[str, Any] = _pruned(found, document)
    return pruned


def kept(document: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """A built-in object without the empty values that the server has left out, as Kubernetes' own types write them."""
    return {
        key: kept(item, live.get(key) or {}) if isinstance(item, Mapping) and item else item
        for key, item in document.items()
        if item or live.get(key) is not None
    }


def state(live: Mapping[str, Any], manager: str) -> dict[str, Any]:
    """The outputs: the live object, without the bookkeeping of its fields; a Secret's data are secret."""
    metadata = {key: value for key, value in live["metadata"].items() if key != "managedFields"}
    outputs = {**live, "metadata": metadata, FIELD_MANAGER: manager}
    if live["kind"] == "Secret" and "data" in live:
        outputs["data"] = Secret(live["data"])
    return outputs


def live_of(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The live object of outputs, as it was seen last."""
    return {key: value for key, value in opened(outputs).items() if not key.startswith("__")}


def handed_over(managed: Iterable[Mapping[str, Any]], manager: str) -> list[dict[str, Any]] | None:
    """The managed fields with those of `kubectl` and of our own create under `manager`; None: there are none."""
    entries = [dict(entry) for entry in managed]
    ours = [entry for entry in entries if not entry.get("subresource") and _is_ours(entry, manager)]
    if all(entry["manager"] == manager for entry in ours):
        return None
    fields: dict[str, Any] = {}
    for entry in ours:
        fields = _united(fields, entry.get("fieldsV1") or {})
    first = {**ours[0], "manager": manager, "operation": "Apply", "fieldsV1": fields}
    return [first, *(entry for entry in entries if entry not in ours)]


def is_created_by_us(managed: Iterable[Mapping[str, Any]]) -> bool:
    """True as long as no update has followed the create."""
    return any((entry["manager"], entry["operation"]) == (CREATOR, "Update") for entry in managed)


def _is_ours(entry: Mapping[str, Any], manager: str) -> bool:
    who = entry["manager"], entry["operation"]
    return who in _TAKEN_OVER or who == (manager, "Apply")


def _united(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _united(left.get(key) or {}, right.get(key) or {}) for key in (*left, *(k for k in right if k not in left))
    }


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value


def _pruned(live: Any, shape: Any) -> Any:
    if isinstance(live, Mapping) and isinstance(shape, Mapping):
        return {key: _pruned(live[key], item) for key, item in shape.items() if live.get(key) is not None}
    if isinstance(live, list) and isinstance(shape, list):
        return [_pruned(there, item) for there, item in zip(live, shape, strict=False)]
    return live


def _decoded(data: Mapping[str, str]) -> dict[str, str]:
    return {key: base64.b64decode(value).decode(errors="replace") for key, value in data.items()}
