"""Find uv, or fetch it with whatever this Python has: a virtual environment with pip, or pip alone."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_PRIVATE = ROOT / "build" / "uv"


def find_uv(python: str) -> str:
    """Path of a uv that runs; a ValueError says what to install where none can be had."""
    for candidate in (shutil.which("uv"), str(_PRIVATE / "bin" / "uv")):
        if candidate and _runs([candidate, "--version"]):
            return candidate
    return _fetch(python)


def _fetch(python: str) -> str:
    # Debian splits ensurepip and pip off Python, each into a package of its own: one of them is enough.
    install = ["install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    if _runs([python, "-m", "venv", "--clear", str(_PRIVATE)]):
        command = [str(_PRIVATE / "bin" / "python"), "-m", "pip", *install, "uv"]
    elif _runs([python, "-m", "pip", "--version"]):
        # --target leaves the system's own packages alone, so it is allowed where Debian guards them.
        command = [python, "-m", "pip", *install, "--target", str(_PRIVATE), "uv"]
    else:
        raise ValueError(
            f"{python} has neither pip nor ensurepip, so uv can't be fetched; install uv, or your "
            "distribution's python3-venv, and run this again"
        )
    if subprocess.run(command, check=False).returncode:
        raise ValueError("uv could not be fetched (see above); give the network or install uv, and run this again")
    return str(_PRIVATE / "bin" / "uv")


def _runs(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
