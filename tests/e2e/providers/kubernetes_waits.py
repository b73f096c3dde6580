"""What must hold before an object counts as ready: `pulumi.com/waitFor` and what a kind waits for. Pure.

From pulumi-kubernetes: pkg/await/condition, pkg/await/awaiters.go, pkg/jsonpath. Of JSONPath: fields, indices
and quoted names, as `kubectl wait` is used; filters, slices and wildcards are refused.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.e2e.providers.kubernetes_kinds import SKIP_AWAIT, WAIT_FOR, annotation
from tests.e2e.providers.serving import RefusedError

Document = Mapping[str, Any]
Condition = Callable[[Document], str | None]
"""None: it holds; else what is missing."""

ASKED_S, VOLUME_S = 600.0, 300.0
"""Limits of a stated condition and of volumes, where nothing else is stated."""
_STEP = re.compile(r"""\.((?:\\.|[^.\[\]\\])+)|\[(\d+)\]|\['([^']*)'\]""")


def conditions(document: Document, binding_mode: Callable[[str], str | None]) -> list[Condition]:
    """What the real provider awaits of this object; `binding_mode` of a storage class by its name."""
    if annotation(document, SKIP_AWAIT) == "true":
        return []
    asked = annotation(document, WAIT_FOR)
    own = _of_kind(document, binding_mode)
    return [*own, *(_parsed(expression) for expression in _expressions(asked))]


def _of_kind(document: Document, binding_mode: Callable[[str], str | None]) -> list[Condition]:
    match document["apiVersion"], document["kind"]:
        case "v1", "PersistentVolume":
            return [_phase("Available", "Bound")]
        case "v1", "PersistentVolumeClaim":
            storage_class = document.get("spec", {}).get("storageClassName")
            late = bool(storage_class) and binding_mode(storage_class) == "WaitForFirstConsumer"
            return [_phase("Pending" if late else "Bound")]
    return []


def _phase(*wanted: str) -> Condition:
    def check(live: Document) -> str | None:
        phase = (live.get("status") or {}).get("phase")
        return None if phase in wanted else f"its phase is {phase}, not {' or '.join(wanted)}"

    return check


def _expressions(asked: str) -> list[str]:
    if not asked.startswith("["):
        return [asked] if asked else []
    try:
        found = json.loads(asked)
    except ValueError:
        found = None
    if not isinstance(found, list) or not found or not all(isinstance(item, str) for item in found):
        raise RefusedError(f"annotation {WAIT_FOR}: {asked!r} is no JSON list of expressions")
    return found


def _parsed(expression: str) -> Condition:
    form, _, rest = expression.partition("=")
    if form == "condition" and rest:
        return _condition(rest)
    if form == "jsonpath" and rest:
        return _jsonpath(rest)
    raise RefusedError(f'annotation {WAIT_FOR}: expected a "jsonpath=" or "condition=" prefix, got {expression!r}')


def _condition(text: str) -> Condition:
    name, _, stated = text.partition("=")
    wanted = stated or "True"

    def check(live: Document) -> str | None:
        for found in (live.get("status") or {}).get("conditions") or []:
            if str(found.get("type")).lower() == name.lower():
                if str(found.get("status")).lower() == wanted.lower():
                    return None
                said = ": ".join(filter(None, (found.get("reason"), found.get("message"))))
                return f"its condition {name} is {found.get('status')}" + (f" ({said})" if said else "")
        return f"it has no condition {name} yet"

    return check


def _jsonpath(text: str) -> Condition:
    match = re.fullmatch(r"\{([^{}]*)\}(?:=(.+))?", text)
    if match is None:
        raise RefusedError(f"annotation {WAIT_FOR}: jsonpath={text}: write {{.field}} or {{.field}}=value")
    path, wanted = _steps(match[1]), match[2]

    def check(live: Document) -> str | None:
        value: Any = live
        for step in path:
            value = _at(value, step)
        if value is None:
            return f"{match[1]} isn't there yet"
        return None if wanted is None or _text(value) == wanted else f"{match[1]} is {_text(value)}, not {wanted}"

    return check


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    position = 0
    while position < len(path):
        found = _STEP.match(path, position)
        if found is None or "*" in found[0]:
            raise RefusedError(f"annotation {WAIT_FOR}: the stand-in reads no {path[position:]!r} in {{{path}}}")
        field, index, quoted = found.groups()
        steps.append(int(index) if index is not None else quoted if field is None else re.sub(r"\\(.)", r"\1", field))
        position = found.end()
    return steps


def _at(value: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return value[step] if isinstance(value, list) and step < len(value) else None
    return value.get(step) if isinstance(value, Mapping) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
