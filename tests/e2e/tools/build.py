"""Building what is missing, into a cache outside the checkout."""

import fcntl
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path

from tests.e2e.tools.environment import cache_folder, find_program
from tests.e2e.tools.go import Go, ToolsError, find_go
from tests.e2e.tools.groups import GROUPS, PULUMI, Group, digest

_LAST_LINES = 25
Say = Callable[[str], None]


@cache
def tool_folder() -> Path:
    """The folder of all binaries; what is missing is built first, with its progress on stderr."""
    return make(find_go(), cache_folder(), GROUPS, say=_on_stderr, pulumi=find_program("pulumi"))


def make(go: Go, kept: Path, groups: Sequence[Group], *, say: Say, pulumi: Path | None) -> Path:
    """Bring each group into the folder `kept`; returns one folder with links to every binary.

    `pulumi`: the one on PATH, taken where it is the pinned version.
    """
    homes: dict[str, Path] = {}
    for group in groups:
        own = _usable(pulumi, group, say) if group.name == PULUMI.name and pulumi is not None else None
        folder = own.parent if own else build(go, kept, group, say=say)
        homes |= dict.fromkeys(group.binaries, folder)
    return _joined(kept, homes)


def build(go: Go, kept: Path, group: Group, *, say: Say) -> Path:
    """The group's folder of binaries, built unless it is there. ToolsError with the end of the compiler's words."""
    home = kept / f"{group.name}-{digest(group, go.version)}"
    if home.is_dir():
        return home
    with _alone(kept, group, say):
        if home.is_dir():
            return home
        # What an interrupted builder left; the lock says that nobody writes there.
        for stale in kept.glob(f".{group.name}-*"):
            shutil.rmtree(stale)
        part = Path(tempfile.mkdtemp(prefix=f".{group.name}-", dir=kept))
        for binary in group.binaries:
            _compile(go, group, binary, part / binary, say)
        # For everybody, as a build by hand would be; mkdtemp's folder is the owner's alone.
        part.chmod(0o755)
        part.rename(home)
    return home


def _compile(go: Go, group: Group, binary: str, target: Path, say: Say) -> None:
    what = f"{binary} {group.version_of(binary)}"
    say(f"{what}: building")
    began = time.monotonic()
    ended = go.run("build", *group.flags, "-o", target, group.binaries[binary], folder=group.folder)
    if ended.returncode or not target.exists():
        last = "\n".join(ended.stdout.splitlines()[-_LAST_LINES:])
        raise ToolsError(f"{what} can't be built (go build ended with {ended.returncode}); its last words:\n{last}")
    say(f"{what}: built in {time.monotonic() - began:.0f} s")


@contextmanager
def _alone(kept: Path, group: Group, say: Say) -> Iterator[None]:
    """One builder a group; the kernel lets go of the lock when its holder dies."""
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / f"{group.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{group.name}: waiting for another build of it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _usable(pulumi: Path, group: Group, say: Say) -> Path | None:
    """The user's own command line where it is the pinned version."""
    try:
        answer = subprocess.run([pulumi, "version"], capture_output=True, text=True, check=False, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        answer = str(error)
    found = re.search(r"\bv\d+\.\d+\.\d+\S*", answer)
    if found and found[0] == group.version:
        return pulumi
    say(f"pulumi: {pulumi} is {found[0] if found else 'no Pulumi'}, not {group.version}; taking one of our own")
    return None


def _joined(kept: Path, homes: dict[str, Path]) -> Path:
    """Links by name: who asks for a folder of tools need not know of groups."""
    key = sha256("\n".join(f"{name}={home}" for name, home in sorted(homes.items())).encode()).hexdigest()[:16]
    target = kept / f"bin-{key}"
    if target.is_dir():
        return target
    kept.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=".bin-", dir=kept))
    for name, home in homes.items():
        (part / name).symlink_to(home / name)
    part.chmod(0o755)
    try:
        part.rename(target)
    except OSError:
        # Somebody else's is there; it is the same.
        shutil.rmtree(part)
        if not target.is_dir():
            raise
    return target


def _on_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
