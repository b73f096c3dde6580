"""Whether an environment holds what a project's requirements.txt asks for."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.requirements import Requirement


def lacking(path: Path, installed: Mapping[str, str]) -> list[str]:
    """The requirements of this file, and of those that it includes, that aren't met; `installed`: name to version."""
    return [str(one) for one in _requirements(path) if not _is_met(one, installed)]


def _is_met(requirement: Requirement, installed: Mapping[str, str]) -> bool:
    if requirement.marker is not None and not requirement.marker.evaluate():
        return True
    version = installed.get(requirement.name.lower().replace("_", "-"))
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def _requirements(path: Path) -> Iterator[Requirement]:
    for line in path.read_text().splitlines() if path.exists() else ():
        text = line.split("#")[0].strip()
        if text.startswith("-r"):
            yield from _requirements(path.parent / text.removeprefix("-r").strip())
        elif text and not text.startswith("-"):
            yield Requirement(text)
