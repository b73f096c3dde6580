"""`topo verify-destroyed STACK --json`, as a user runs it in their checkout."""

import json
import subprocess
from dataclasses import dataclass
from typing import Any

from tests.e2e.engine.workspace import Workspace
from tests.source import ROOT


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What it said of the account."""

    code: int
    document: dict[str, Any]

    def left(self, kind: str) -> list[str]:
        """Ids of the leftovers of a kind, in its words."""
        return [one["id"] for one in self.document["left"] if one["kind"] == kind]

    def ids(self, kind: str) -> list[str]:
        """The same, with what is kept by choice."""
        return [*self.left(kind), *(one["id"] for one in self.document["kept"] if one["kind"] == kind)]


def look(user: Workspace, stack: str) -> Listing:
    """Ask the account; AssertionError where it could not be asked."""
    command = [str(ROOT / ".venv" / "bin" / "python"), "-m", "workloads", "verify-destroyed", stack, "--json"]
    done = subprocess.run(command, cwd=user.project, env=user.environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return Listing(code=done.returncode, document=json.loads(done.stdout))
