"""Init container `check`: what the image must hold is looked for before the run starts, and named if missing.

A missing plugin or a low memlock limit otherwise shows as an NCCL error on every rank at once, or as a run
that silently takes TCP. Standard library only, so that the check itself needs nothing of what it looks for.
"""

import argparse
import ctypes
import importlib.util
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGES = (
    "torch",
    "transformers",
    "deepspeed",
    "accelerate",
    "datasets",
    "tokenizers",
    "fsspec",
    "pydantic",
)
"""What the trainer imports that isn't in the standard library."""

USER = 0
"""For any other user a capability that the pod adds isn't effective, and EFA needs IPC_LOCK."""

_IPC_LOCK = 14  # bit of CAP_IPC_LOCK in linux/capability.h
_NCCL_VERSION = "import torch; print('.'.join(map(str, torch.cuda.nccl.version())))"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the plan says of the pod."""

    efa_devices: int
    shm_gib: int
    net_plugin: str | None
    """Value of NCCL_NET_PLUGIN; None: NCCL looks for its default name."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What this container holds."""

    packages: tuple[str, ...]
    nccl: str | None
    """Version of torch's NCCL; None: torch has none."""
    libraries: tuple[str, ...]
    """Those of `library_names` that the dynamic linker loads, as NCCL's own dlopen would."""
    user: int
    memlock_bytes: int
    """Soft limit; `resource.RLIM_INFINITY` where there is none."""
    ipc_lock: bool
    """CAP_IPC_LOCK is effective: the limit then doesn't count."""
    shm_bytes: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is missing, a sentence each, and return 1; else print what was found and return 0."""
    parser = argparse.ArgumentParser(prog="python -m trainer.check_image", description=__doc__)
    parser.add_argument("--efa-devices", type=int, required=True)
    parser.add_argument("--shm-gib", type=int, required=True)
    parser.add_argument("--net-plugin")
    given = parser.parse_args(arguments)
    wanted = Wanted(efa_devices=given.efa_devices, shm_gib=given.shm_gib, net_plugin=given.net_plugin)
    found = look(wanted)
    faults = missing(wanted, found)
    for fault in faults:
        print(f"check: {fault}", file=sys.stderr)
    if not faults:
        print(f"check: NCCL {found.nccl}, {', '.join(found.libraries) or 'no network plugin needed'}: all there")
    return 1 if faults else 0


def missing(wanted: Wanted, found: Found) -> list[str]:
    """Sentences about what is missing, each with its remedy; empty: the run can start."""
    return [*_package_faults(found), *_shm_faults(wanted, found), *_efa_faults(wanted, found)]


def library_names(wanted: Wanted) -> tuple[str, ...]:
    """Shared libraries that EFA needs: libfabric, and the plugin by the name under which NCCL opens it."""
    if wanted.efa_devices == 0:
        return ()
    suffix = "" if wanted.net_plugin is None else f"-{wanted.net_plugin}"
    return ("libfabric.so.1", f"libnccl-net{suffix}.so")


def look(wanted: Wanted) -> Found:
    """Look at this container. Asks torch for its NCCL in a process of its own, which takes some seconds."""
    shm = os.statvfs("/dev/shm")
    return Found(
        packages=tuple(name for name in PACKAGES if importlib.util.find_spec(name) is not None),
        nccl=_nccl_version(),
        libraries=tuple(name for name in library_names(wanted) if _loads(name)),
        user=os.getuid(),
        memlock_bytes=resource.getrlimit(resource.RLIMIT_MEMLOCK)[0],
        ipc_lock=has_ipc_lock(Path("/proc/self/status").read_text()),
        shm_bytes=shm.f_blocks * shm.f_frsize,
    )


def has_ipc_lock(status: str) -> bool:
    """Whether CAP_IPC_LOCK is effective, from the text of /proc/<pid>/status."""
    line = next((li for li in status.splitlines() if li.startswith("CapEff:")), "CapEff: 0")
    return bool(int(line.split()[1], 16) >> _IPC_LOCK & 1)


def _nccl_version() -> str | None:
    asked = subprocess.run([sys.executable, "-c", _NCCL_VERSION], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or None


def _loads(name: str, load: Callable[[str], object] = ctypes.CDLL) -> bool:
    try:
        load(name)
    except OSError:
        return False
    return True


def _package_faults(found: Found) -> list[str]:
    absent = [name for name in PACKAGES if name not in found.packages]
    faults = []
    if absent:
        faults.append(f"no package {', '.join(absent)}; add it to the image or to the trainer's lock")
    if found.nccl is None:
        faults.append("torch has no NCCL; use an image whose torch is built for CUDA")
    return faults


def _shm_faults(wanted: Wanted, found: Found) -> list[str]:
    if found.shm_bytes >= wanted.shm_gib * 2**30:
        return []
    return [
        f"/dev/shm has {found.shm_bytes / 2**30:.2f} GiB of {wanted.shm_gib}; mount an emptyDir of medium "
        "Memory there, within the pod's memory limit (under hostIPC it is the host's own)"
    ]


def _efa_faults(wanted: Wanted, found: Found) -> list[str]:
    faults = [
        f"{name} doesn't load, which EFA needs; use an image with AWS's EFA installer and its NCCL plugin"
        for name in library_names(wanted)
        if name not in found.libraries
    ]
    limited = found.memlock_bytes != resource.RLIM_INFINITY and not found.ipc_lock
    if wanted.efa_devices and limited:
        faults.append(
            f"memlock is limited to {found.memlock_bytes // 1024} KiB and IPC_LOCK isn't effective for user "
            f"{found.user}, so libfabric can't register memory; add the capability IPC_LOCK and run as user {USER}"
        )
    return faults


if __name__ == "__main__":
    sys.exit(main())
