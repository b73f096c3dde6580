"""Scratch folders that outlive nobody: each names its owner, and the next start removes the ownerless.

A folder's `owner` file holds the process id and the start time of the lab that made it. A number alone could
have been given to another process since; number and start time together can't.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

LEAST_FREE_BYTES = 512 * 1024**2
"""What a start asks for: two pods' checkpoints of the `tiny` model and their logs, several times over."""

_OWNER = "owner"


@contextlib.contextmanager
def scratch_folder(parent: Path | None = None, least_free_bytes: int = LEAST_FREE_BYTES) -> Iterator[Path]:
    """A fresh folder, gone at the end; leftovers of killed labs beside it are removed first.

    `parent` defaults to `topolab-<user id>` in the system's folder for temporary files (TMPDIR). Raises
    ValueError when the folder can't be made or its disk is too full.
    """
    home = parent or Path(tempfile.gettempdir()) / f"topolab-{os.getuid()}"
    _prepare(home, least_free_bytes)
    remove_leftovers(home)
    folder = _claim(home)
    try:
        yield folder
    finally:
        _remove(folder)


def remove_leftovers(home: Path) -> tuple[Path, ...]:
    """Remove the folders under `home` whose owner has ended; what was removed."""
    gone = tuple(folder for folder in sorted(home.iterdir()) if folder.is_dir() and not _owned(folder))
    for folder in gone:
        _remove(folder)
    return gone


def start_time(pid: int) -> str | None:
    """When the process started, in the system's own words; None when there is no such process."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            # proc_pid_stat(5): field 22, counted after the name in brackets, which may hold blanks.
            return stat.read_text().rpartition(")")[2].split()[19]
        except OSError:
            return None
    listed = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return listed.stdout.strip() or None


def _prepare(home: Path, least_free_bytes: int) -> None:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        free = shutil.disk_usage(home).free
    except OSError as error:
        raise ValueError(f"scratch folder {home}: {error.strerror}; set TMPDIR to a folder of yours") from error
    if home.stat().st_uid != os.getuid():
        raise ValueError(f"scratch folder {home}: belongs to another user; set TMPDIR to a folder of yours")
    if free < least_free_bytes:
        raise ValueError(
            f"scratch folder {home}: {free / 1024**2:.0f} MiB are free and a lab needs "
            f"{least_free_bytes / 1024**2:.0f} MiB; make room or set TMPDIR to a folder on a roomier disk"
        )


def _claim(home: Path) -> Path:
    """Made under a name that the sweep doesn't look at, and renamed once its owner stands in it."""
    owner = f"{os.getpid()} {start_time(os.getpid())}\n"
    made = Path(tempfile.mkdtemp(dir=home, prefix=f".{os.getpid()}-"))
    (made / _OWNER).write_text(owner)
    return made.rename(home / f"lab{made.name}")


def _owned(folder: Path) -> bool:
    try:
        if folder.name.startswith("."):
            return start_time(int(folder.name[1:].split("-")[0])) is not None
        pid, started = (folder / _OWNER).read_text().strip().split(" ", 1)
        return start_time(int(pid)) == started
    except (OSError, ValueError):
        return False


def _remove(folder: Path) -> None:
    """A pod may leave folders that deny their own user entry; as their owner we may change that."""
    for current, folders, _ in os.walk(folder, onerror=lambda _: None):
        for name in folders:
            path = Path(current) / name
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
