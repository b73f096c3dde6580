"""Requirements and locks as values: which pins an interpreter lacks. Pure; standard library only."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TORCH_FAMILY = re.compile(r"(torch|triton|nvidia-.+|cuda-.+)$")
"""torch and what it brings for its GPUs: an image or a given interpreter has its own."""

_NAME = r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?"


@dataclass(frozen=True, kw_only=True)
class Pin:
    """One entry of a lock: its lines as they stand, and the packages that asked for it."""

    name: str
    version: str
    lines: tuple[str, ...]
    asked_by: frozenset[str]


def normal(name: str) -> str:
    """A distribution's name as locks write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(text: str) -> dict[str, Pin]:
    """The pins of a lock that `uv pip compile` annotated."""
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)
    pins = [_pin(block.splitlines()) for block in blocks if block[:1].isalnum()]
    return {pin.name: pin for pin in pins}


def read_requirements(path: Path) -> dict[str, str]:
    """Direct requirements of a file and of those that it includes: name to version range."""
    ranges: dict[str, str] = {}
    for raw in path.read_text().splitlines():
        line = raw.split("#")[0].strip()
        if line.startswith("-r "):
            ranges |= read_requirements(path.parent / line.removeprefix("-r ").strip())
        elif match := re.match(_NAME + "(.*)", line):
            ranges[normal(match[1])] = match[2].strip()
    return ranges


def meets(version: str | None, wanted: str) -> bool:
    """Whether an installed version (None: not installed) lies in a range of >= and < clauses."""
    if version is None:
        return False
    have = _release(version)
    for clause in filter(None, wanted.split(",")):
        match = re.fullmatch(r"\s*(>=|<)\s*([0-9.]+)\s*", clause)
        assert match is not None, f"the requirements use >= and < alone, not {clause!r}"
        limit = _release(match[2])
        if (have < limit) == (match[1] == ">="):
            return False
    return True


def unmet(have: Mapping[str, str], ranges: Mapping[str, str]) -> list[str]:
    """Requirements that an interpreter with the distributions `have` doesn't meet."""
    return sorted(name for name, wanted in ranges.items() if not meets(have.get(name), wanted))


def lacking(have: Mapping[str, str], names: list[str], pins: Mapping[str, Pin]) -> list[Pin]:
    """Pins that bring `names` to an interpreter that has `have`: their whole tree of the lock.

    Not what is there at the same version, and not torch's own family, which is the interpreter's.
    """
    tree = set(names)
    while more := {p.name for p in pins.values() if p.asked_by & tree} - tree:
        tree |= more
    wanted = [p for name, p in sorted(pins.items()) if name in tree and not TORCH_FAMILY.match(name)]
    return [p for p in wanted if have.get(p.name) != p.version]


def _pin(block: list[str]) -> Pin:
    match = re.match(_NAME + r"==([^\s;\\]+)", block[0])
    assert match is not None, f"an entry of a lock without ==: {block[0]!r}"
    comments = [line.strip(" #") for line in block if line.lstrip().startswith("#")]
    askers = frozenset(normal(c.removeprefix("via").strip()) for c in comments)
    lines = tuple(line for line in block if not line.lstrip().startswith("#"))
    return Pin(name=normal(match[1]), version=match[2], lines=lines, asked_by=askers)


def _release(version: str) -> tuple[int, ...]:
    match = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    assert match is not None, f"not a version: {version!r}"
    parts = [int(part) for part in match[0].split(".")]
    while len(parts) > 1 and parts[-1] == 0:  # 3 and 3.0 are one version
        parts.pop()
    return tuple(parts)
