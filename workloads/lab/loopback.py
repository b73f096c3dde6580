"""Pods without namespaces: all on the host's loopback, their paths rewritten to folders of their own.

The way out where a machine refuses namespaces. Nothing can be mounted, so each mount point becomes a folder
below the pod's state and every path in the pod's command line and variables that leads there is rewritten;
the pods share the loopback, so the names of their peers become 127.0.0.1 and no rate can be set. `/dev/shm`
stays the host's: programs know it by that name alone.
"""

import copy
import os
import re
import socket
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from workloads.lab.documents import Manifest
from workloads.lab.pod_program import Container, PodProgram, Volume
from workloads.lab.pod_root import write_files

_ADDRESS = "PET_MASTER_ADDR"
_PORT = "PET_MASTER_PORT"
_INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
_STAYS = "/dev/shm"

# A path and what stands before it in `file:///records`, `--out=/records` or `/a:/b`.
_PATH = re.compile(r"(?<![\w.~$)}-])/[^\s:,;'\"=]*")


def on_loopback(pods: Iterable[Manifest]) -> tuple[list[dict[str, Any]], str | None]:
    """The pods with their rendezvous on 127.0.0.1, and a sentence where the port they name was taken.

    Only variables that a pod has are changed; its other fields stay.
    """
    changed = [copy.deepcopy(dict(pod)) for pod in pods]
    entries = [entry for pod in changed for entry in pod["spec"]["containers"][0].get("env") or ()]
    wanted = next((int(entry["value"]) for entry in entries if entry["name"] == _PORT), None)
    port = None if wanted is None else free_port(wanted)
    values = {_ADDRESS: "127.0.0.1", _PORT: str(port), **dict.fromkeys(_INTERFACES, loopback_interface())}
    for entry in entries:
        if entry["name"] in values:
            entry["value"] = values[entry["name"]]
    if port == wanted:
        return changed, None
    return changed, f"port {wanted} is taken on this machine; the pods meet on port {port}"


def loopback_interface() -> str:
    """Its name on this system."""
    return "lo" if sys.platform.startswith("linux") else "lo0"


def free_port(wanted: int) -> int:
    """`wanted` where nothing listens on it, else one that the system picks."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise ValueError("no port is free on this machine's loopback; end what holds them")


def relocate(program: PodProgram, own: Mapping[str, str]) -> PodProgram:
    """The program with its mount points and /tmp below its state; makes these folders.

    `own` are the node's variables, which name paths of the host and stay as they are.
    """
    root = Path(program.state) / "root"
    places = {volume.name: _place(program, volume) for volume in program.volumes}
    (root / "tmp" / "home").mkdir(parents=True)
    for mount in program.mounts:
        if mount.path != _STAYS:
            link = root / mount.path.lstrip("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(places[mount.volume])
    paths = _moved_paths(program, root)
    stay = (*program.visible, *program.shared, str(root))
    return replace(
        program,
        init=tuple(_moved(container, paths, stay, own) for container in program.init),
        main=_moved(program.main, paths, stay, own),
    )


def rewrite(text: str, paths: Mapping[str, str], stay: tuple[str, ...] = ()) -> str:
    """`text` with each path at or below a key of `paths` moved, but for those below `stay`."""

    def moved(found: re.Match[str]) -> str:
        slashes = len(found[0]) - len(found[0].lstrip("/")) - 1
        path = found[0][slashes:]
        # Two slashes begin the host of a URL, three its path (RFC 3986).
        if slashes == 1 or any(_within(path, folder) for folder in stay):
            return found[0]
        for old in sorted(paths, key=len, reverse=True):
            if _within(path, old):
                return "/" * slashes + paths[old] + path[len(old) :]
        return found[0]

    return _PATH.sub(moved, text)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _moved_paths(program: PodProgram, root: Path) -> dict[str, str]:
    """Mount points, the folders above them that only a pod has, and /tmp."""
    points = {"/tmp"}
    for mount in program.mounts:
        if mount.path != _STAYS:
            above = [str(folder) for folder in Path(mount.path).parents if not os.path.lexists(folder)]
            points |= {mount.path, *above}
    return {point: f"{root}{point}" for point in points}


def _moved(container: Container, paths: Mapping[str, str], stay: tuple[str, ...], own: Mapping[str, str]) -> Container:
    environment = {
        name: value if name in own else rewrite(value, paths, stay) for name, value in container.environment.items()
    }
    return replace(
        container,
        command=tuple(rewrite(word, paths, stay) for word in container.command),
        environment={"TMPDIR": paths["/tmp"], **environment},
        folder=paths["/tmp"] if container.folder == "/" else rewrite(container.folder, paths, stay),
    )


def _place(program: PodProgram, volume: Volume) -> Path:
    if volume.folder is not None:
        return Path(volume.folder)
    place = Path(program.state) / "volumes" / volume.name
    place.mkdir(parents=True)
    write_files(place, volume, program.run_as)
    return place
