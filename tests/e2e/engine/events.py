"""What an engine did, out of the events that it wrote: one JSON object a line."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DEFAULT_PROVIDER = "pulumi:providers:"


@dataclass(frozen=True, kw_only=True)
class Changes:
    """URNs by what became of them, each in the order in which the engine finished (or, in a preview, planned) it."""

    created: tuple[str, ...]
    updated: tuple[str, ...]
    replaced: tuple[str, ...]
    deleted: tuple[str, ...]
    same: tuple[str, ...]
    failed: tuple[str, ...]

    @property
    def is_none(self) -> bool:
        """Nothing was made, changed or taken away."""
        return not (self.created or self.updated or self.replaced or self.deleted or self.failed)

    def summary(self) -> str:
        """One line for a message."""
        parts = {name: len(urns) for name, urns in vars(self).items() if urns}
        return ", ".join(f"{count} {name}" for name, count in parts.items()) or "nothing"


def read_events(path: Path) -> list[dict[str, Any]]:
    """All events so far, in order; the unfinished last line of a killed engine is left out."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def changes_of(events: Iterable[Mapping[str, Any]], *, preview: bool) -> Changes:
    """What the steps of one run came to."""
    listed = list(events)
    done = _steps(listed, "resourcePreEvent" if preview else "resOutputsEvent", planning=preview)
    failed = _steps(listed, "resOpFailedEvent", planning=preview)
    return Changes(
        created=_with(done, "create"),
        updated=_with(done, "update"),
        replaced=_with(done, "replace"),
        deleted=_with(done, "delete"),
        same=_with(done, "same"),
        failed=tuple(urn for _, urn in failed),
    )


def summary_of(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The engine's own last count, by step; empty where it was killed before."""
    found = [event["summaryEvent"].get("resourceChanges") or {} for event in events if "summaryEvent" in event]
    return dict(found[-1]) if found else {}


def messages(events: Iterable[Mapping[str, Any]], severity: str) -> list[str]:
    """Diagnostics of one severity (`error`, `warning`, `info`, `info#err`), colours taken out."""
    found = [event["diagnosticEvent"] for event in events if "diagnosticEvent" in event]
    return [plain(one["message"]).strip() for one in found if one["severity"] == severity and not one.get("ephemeral")]


def plain(text: str) -> str:
    """A message without the engine's colour directives (`<{%fg 1%}>`)."""
    parts = text.split("<{%")
    return parts[0] + "".join(part.partition("%}>")[2] for part in parts[1:])


def kind_of(urn: str) -> str:
    """The type token of a resource, without those of its parents."""
    return urn.split("::")[2].rsplit("$", maxsplit=1)[-1]


def name_of(urn: str) -> str:
    """The name that the program gave it."""
    return urn.split("::", 3)[3]


def _steps(events: Iterable[Mapping[str, Any]], kind: str, *, planning: bool) -> list[tuple[str, str]]:
    """Steps of the preview, or of the update that follows it in the same command."""
    found = [event[kind] for event in events if kind in event and bool(event[kind].get("planning")) is planning]
    steps = [(str(one["metadata"]["op"]), str(one["metadata"]["urn"])) for one in found]
    return [(step, urn) for step, urn in steps if not _is_default_provider(urn)]


def _is_default_provider(urn: str) -> bool:
    """The engine makes these by itself, and its own summary leaves them out."""
    return kind_of(urn).startswith(_DEFAULT_PROVIDER) and name_of(urn).startswith("default")


def _with(steps: Iterable[tuple[str, str]], operation: str) -> tuple[str, ...]:
    return tuple(urn for step, urn in steps if step == operation)
