"""What this rank runs on: its accelerator, the versions around it, its peak memory."""

import platform
import resource
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
import torch.cuda.nccl

from trainer.record import Device

PACKAGES = (
    "torch",
    "triton",
    "flash-attn-4",
    "transformers",
    "deepspeed",
    "accelerate",
    "datasets",
    "tokenizers",
    "numpy",
    "pydantic",
    "fsspec",
    "s3fs",
)


def device(local_rank: int) -> Device | None:
    """The GPU of this rank; None on a machine without one."""
    if not torch.cuda.is_available():
        return None
    properties: Any = torch.cuda.get_device_properties(local_rank)  # torch's stubs lack the bus numbers
    return Device(
        name=properties.name,
        uuid=f"GPU-{properties.uuid}",
        pci_bus_id=(f"{properties.pci_domain_id:08x}:{properties.pci_bus_id:02x}:{properties.pci_device_id:02x}.0"),
        memory_bytes=properties.total_memory,
    )


def versions() -> dict[str, str]:
    """Versions of everything that may change a step's time; what isn't there is left out."""
    found = {"python": platform.python_version(), "kernel": platform.release()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    if torch.cuda.is_available():
        found["cuda"] = str(torch.version.cuda)
        found["nccl"] = _nccl_version()
        found["driver"] = _run("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0")
    return found


def gpu_topology() -> str | None:
    """`nvidia-smi topo -m` of this pod; None on a machine without GPU."""
    return _run("nvidia-smi", "topo", "-m") if torch.cuda.is_available() else None


def peak_resident_bytes() -> int:
    """The largest resident set of this process so far (Linux counts it in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def peak_resident_bytes_of_children() -> int:
    """The largest resident set of any process that this one has waited for."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def peak_gpu_bytes() -> tuple[int | None, int | None]:
    """The largest allocated and reserved memory on this rank's GPU so far."""
    if not torch.cuda.is_available():
        return None, None
    return torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()


def _nccl_version() -> str:
    nccl: Any = torch.cuda.nccl  # has no types
    parts: tuple[int, ...] = nccl.version()
    return ".".join(map(str, parts))


def _run(*command: str) -> str:
    """Output of a command; what went wrong where it fails, because a record without it is still a record."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        return f"not known: {error}"
    return done.stdout.strip()
