"""What this machine has: the user's cache folder, and programs on PATH."""

import os
import shutil
from pathlib import Path


def cache_folder() -> Path:
    """Where binaries are kept between checkouts: XDG_CACHE_HOME, or ~/.cache."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    # The specification says so: a relative path is to be ignored.
    home = Path(given) if given.startswith("/") else Path.home() / ".cache"
    return home / "topolab" / "tools"


def find_program(name: str) -> Path | None:
    """A program on PATH."""
    found = shutil.which(name)
    return None if found is None else Path(found)


def go_environment() -> dict[str, str]:
    """The caller's environment, less what would change the outcome.

    No C compiler: what is built is then the same with and without one, and linked in half the time.
    """
    return {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"}
