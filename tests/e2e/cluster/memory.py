"""What the cluster's processes hold in memory."""

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path

from workloads.lab.descendants import descendants

_RESIDENT = re.compile(r"^VmRSS:\s+(\d+) kB", re.MULTILINE)


def resident_mib(roots: Iterable[int]) -> dict[str, float]:
    """MiB by program, of these processes and all below them; two of one program are added up."""
    found: dict[str, float] = {}
    for root in roots:
        for pid in (root, *descendants(root)):
            with contextlib.suppress(OSError):  # it ended between the list and the look
                name, size = _look(pid)
                found[name] = found.get(name, 0.0) + size
    return found


def _look(pid: int) -> tuple[str, float]:
    folder = Path(f"/proc/{pid}")
    words = (folder / "cmdline").read_bytes().split(b"\0")
    program, arguments = Path(words[0].decode()).name, [word.decode() for word in words[1:]]
    resident = _RESIDENT.search((folder / "status").read_text())
    return _name(program, arguments), int(resident[1]) / 1024 if resident else 0.0


def _name(program: str, arguments: list[str]) -> str:
    if program == "kubebox":
        return arguments[0]
    if program.startswith("python") and "-m" in arguments:
        return arguments[arguments.index("-m") + 1].rpartition(".")[2]
    return program
