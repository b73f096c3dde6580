"""A pod as processes: what `pod_reader` makes of a Pod dict and `pod_init` runs. Plain values only."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workloads.lab.documents import References
from workloads.lab.links import PodLink


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a node gives to a pod."""

    state: Path
    """An empty folder of this pod's own on the host: its /tmp and its emptyDirs."""
    log: Path
    """Where everything that the pod prints is appended."""
    references: References
    link: PodLink | None
    """None: the machine allows no namespaces; the pod runs on the host's loopback, its paths rewritten."""
    hosts: str
    """Text of the pod's /etc/hosts; unused without a link."""
    interpreter: Path
    """The Python that `python` means in the pod."""
    environment: Mapping[str, str]
    """Variables that the node adds; one that the pod sets otherwise is an error."""
    shared_folders: tuple[Path, ...] = ()
    """Folders of the host that the pod sees and writes at their own path, such as a cache."""
    gpus: tuple[int, ...] = ()
    """Indices of the GPUs that the pod alone gets."""
    run_as: tuple[int, int] | None = None
    """User and group of the pod's processes; None: the caller's."""
    node: str = "localhost"


@dataclass(frozen=True)
class Container:
    """One container as one process."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str


@dataclass(frozen=True)
class VolumeFile:
    """A file of a config map or secret."""

    path: str
    content: bytes
    mode: int


@dataclass(frozen=True)
class Volume:
    """`memory`: a tmpfs; `scratch`: a folder that ends with the pod; `files`; `folder`: one of the host."""

    name: str
    kind: Literal["memory", "scratch", "files", "folder"]
    size_bytes: int | None = None
    files: tuple[VolumeFile, ...] = ()
    folder: str | None = None


@dataclass(frozen=True)
class VolumeMount:
    """Where a volume appears in the pod."""

    path: str
    volume: str
    read_only: bool


@dataclass(frozen=True)
class PodProgram:
    """Everything that `pod_init` needs."""

    name: str
    hostname: str
    init: tuple[Container, ...]
    main: Container
    volumes: tuple[Volume, ...]
    mounts: tuple[VolumeMount, ...]
    deadline_s: float | None
    grace_s: float
    state: str
    hosts: str
    visible: tuple[str, ...]
    """Host paths that the pod must see although a part of its own (as /tmp) lies over them."""
    shared: tuple[str, ...]
    gpus: tuple[int, ...]
    namespace: int | None
    """The open network namespace; None: no namespaces at all."""
    run_as: tuple[int, int] | None


Reason = Literal["Completed", "Error", "DeadlineExceeded", "InitError", "StartError"]
"""Kubernetes' own words where it has one; `InitError`: an init container failed."""


@dataclass(frozen=True)
class PodResult:
    """How a pod ended."""

    exit_code: int
    """Of the deciding container, 128 + number after a signal, 128 when it could not be started."""
    reason: Reason
    container: str
    message: str
