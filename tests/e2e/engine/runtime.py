"""What `runtime.options` of Pulumi.yaml asks of the Python host, and the process that they lead to."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict

TOOLCHAIN = "pip"
"""The one that this project's Pulumi.yaml names; the real host also knows poetry and uv."""


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """The interpreter of a program, out of its virtualenv."""

    virtualenv: Path

    @property
    def python(self) -> Path:
        """The interpreter; it may not be there yet."""
        return self.virtualenv / "bin" / "python"

    def check(self) -> None:
        """ValueError where there is no interpreter, in the words of the real host."""
        if not self.python.is_file():
            state = "doesn't appear to be a virtual environment" if self.virtualenv.is_dir() else "doesn't exist"
            raise ValueError(
                f"The 'virtualenv' option in Pulumi.yaml is set to {self.virtualenv.name!r}, but "
                f"{str(self.virtualenv)!r} {state}; run `make set-up`"
            )

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment of a process inside the virtualenv, as its `activate` would leave it.

        PYTHONPATH is the host's own way to this checkout and would let the program import from there what its own
        folder lacks.
        """
        own = {name: value for name, value in inherited.items() if name not in {"PYTHONHOME", "PYTHONPATH"}}
        path = f"{self.virtualenv / 'bin'}:{own['PATH']}" if "PATH" in own else str(self.virtualenv / "bin")
        return {**own, "PATH": path, "VIRTUAL_ENV": str(self.virtualenv)}


def runtime_of(root: str, options: Any) -> Runtime:
    """The runtime of a program whose Pulumi.yaml lies in `root`; ValueError for what this host can't do."""
    values: dict[str, Any] = MessageToDict(options)
    unknown = sorted(set(values) - {"toolchain", "virtualenv"})
    if unknown:
        raise ValueError(
            f"runtime option {', '.join(unknown)} of Pulumi.yaml: this host knows toolchain and virtualenv"
        )
    if values.get("toolchain", TOOLCHAIN) != TOOLCHAIN:
        raise ValueError(f"toolchain option {values['toolchain']!r} of Pulumi.yaml: this host knows {TOOLCHAIN} alone")
    if "virtualenv" not in values:
        raise ValueError("Pulumi.yaml names no virtualenv: this host runs no program in the machine's own Python")
    return Runtime(virtualenv=Path(root) / values["virtualenv"])
