"""A temporary folder for a command that a person starts, and an end for those that a killed one left."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def own_folder(prefix: str) -> Iterator[Path]:
    """A folder whose name tells the process that it belongs to; gone afterwards, as those of dead processes before."""
    sweep_stale(prefix)
    with tempfile.TemporaryDirectory(prefix=f"{prefix}{os.getpid()}-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def sweep_stale(prefix: str) -> list[Path]:
    """Remove the folders of processes that ended without removing them (SIGKILL); which they were."""
    named = re.compile(rf"{re.escape(prefix)}(\d+)-")
    found = [path for path in Path(tempfile.gettempdir()).glob(f"{prefix}*") if (match := named.match(path.name))
             and not _lives(int(match[1]))]  # fmt: skip
    for path in found:
        # Another user's stays theirs.
        shutil.rmtree(path, ignore_errors=True)
    return found


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
