"""The Go toolchain of this machine: found, new enough, and called."""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.tools.environment import find_program, go_environment
from tests.e2e.tools.groups import GROUPS, SOURCES, needed_go


class ToolsError(RuntimeError):
    """The tools can't be made here; the sentence says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Go:
    """A toolchain that can build all groups."""

    path: Path
    version: str
    """With its platform: go1.26.8 linux/amd64."""

    def run(self, *words: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
        """Output and errors together, in the order in which they came."""
        return subprocess.run(
            [self.path, *words],
            cwd=folder,
            env=go_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


def find_go() -> Go:
    """Go of this machine; ToolsError where there is none, or an older one that can't fetch a newer by itself."""
    path = find_program("go")
    if path is None:
        raise ToolsError(f"Go isn't on PATH; {_remedy()}")
    # In the folder that asks most: Go 1.21 and later may fetch the toolchain that a go.mod asks for.
    demanding = max(GROUPS, key=lambda group: needed_go([group.name]))
    asked = Go(path=path, version="").run(
        "env", "-json", "GOVERSION", "GOOS", "GOARCH", folder=SOURCES / demanding.name
    )
    if asked.returncode:
        raise ToolsError(f"{path} can't build this ({' '.join(asked.stdout.split())}); {_remedy()}")
    values = json.loads(asked.stdout)
    if _numbers(values["GOVERSION"]) < needed_go():
        raise ToolsError(f"{path} is {values['GOVERSION']}; {_remedy()}")
    return Go(path=path, version=f"{values['GOVERSION']} {values['GOOS']}/{values['GOARCH']}")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _remedy() -> str:
    needed = ".".join(str(part) for part in needed_go())
    return (
        f"Go {needed} or newer builds the programs of the proof: unpack it from https://go.dev/dl and put its bin "
        "folder on PATH"
    )
