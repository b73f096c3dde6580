"""Reads a Kubernetes Pod as a program that the sandbox can run, or says which field it can't honour."""

import re
from pathlib import Path
from typing import Any

from workloads.lab.documents import Manifest
from workloads.lab.pod_environment import environment, expand
from workloads.lab.pod_fields import check_fields, gpus_asked, refuse_unknown
from workloads.lab.pod_program import Container, PodProgram, Surroundings, Volume, VolumeFile, VolumeMount

DEFAULT_GRACE_S = 30.0
"""Kubernetes' terminationGracePeriodSeconds where a pod names none."""

_FILE_MODE = 0o644

_QUANTITY = re.compile(r"([0-9.]+)(Ki|Mi|Gi|Ti|k|M|G|T)?")
_FACTORS = {
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, None: 1,
}  # fmt: skip


def read_pod(pod: Manifest, surroundings: Surroundings, bin_folder: str, visible: tuple[str, ...]) -> PodProgram:
    """The program of a Pod; ValueError names the pod, the field, the value and what to do.

    `bin_folder` holds `python`; `visible` are host paths that must stay visible.
    """
    check_fields(pod)
    name, spec = pod["metadata"]["name"], pod["spec"]
    _check_gpus(pod, surroundings)
    read = {
        kind: tuple(_container(pod, item, surroundings, bin_folder) for item in spec.get(kind) or ())
        for kind in ("initContainers", "containers")
    }
    volumes = tuple(_volume(volume, surroundings, f"pod {name}") for volume in spec.get("volumes") or ())
    deadline = spec.get("activeDeadlineSeconds")
    grace = spec.get("terminationGracePeriodSeconds")
    return PodProgram(
        name=name,
        hostname=spec.get("hostname") or name,
        init=read["initContainers"],
        main=read["containers"][0],
        volumes=volumes,
        mounts=_mounts(pod, {volume.name for volume in volumes}),
        deadline_s=None if deadline is None else float(deadline),
        grace_s=DEFAULT_GRACE_S if grace is None else float(grace),
        state=str(surroundings.state),
        hosts=surroundings.hosts,
        visible=visible,
        shared=tuple(str(folder) for folder in surroundings.shared_folders),
        gpus=surroundings.gpus,
        namespace=surroundings.link.namespace if surroundings.link else None,
        run_as=surroundings.run_as,
    )


def _check_gpus(pod: Manifest, surroundings: Surroundings) -> None:
    asked = gpus_asked(pod["spec"]["containers"][0])
    if asked != len(surroundings.gpus):
        raise ValueError(
            f"pod {pod['metadata']['name']}: asks for {asked} GPUs and gets {len(surroundings.gpus)}; "
            "run it on a machine with as many"
        )


def _container(pod: Manifest, container: Manifest, surroundings: Surroundings, bin_folder: str) -> Container:
    variables = environment(pod, container, surroundings, bin_folder)
    words = [*container["command"], *(container.get("args") or ())]
    return Container(
        name=container["name"],
        command=tuple(expand(word, variables) for word in words),
        environment=variables,
        folder=container.get("workingDir") or "/",
    )


def _volume(volume: Manifest, surroundings: Surroundings, pod: str) -> Volume:
    name = volume["name"]
    where = f"{pod}: volume {name}"
    kinds = [key for key in volume if key != "name"]
    if len(kinds) != 1:
        raise ValueError(f"{where}: names {kinds or 'no source'}; a volume has one source")
    kind, source = kinds[0], volume[kinds[0]] or {}
    if kind == "emptyDir":
        return _empty_dir(name, source, where)
    if kind in {"configMap", "secret"}:
        return Volume(name, "files", files=_files(kind, source, surroundings, where))
    if kind == "persistentVolumeClaim":
        return _claim(name, source, surroundings, where)
    if kind == "hostPath":
        return _host_path(name, source, where)
    raise ValueError(f"{where}: {kind} isn't a volume that the sandbox knows; remove it")


def _empty_dir(name: str, source: Manifest, where: str) -> Volume:
    refuse_unknown(source, frozenset({"medium", "sizeLimit"}), f"{where}.emptyDir")
    medium = source.get("medium") or ""
    if medium not in {"", "Memory"}:
        raise ValueError(f"{where}.emptyDir.medium: {medium}; the sandbox knows the disk and Memory")
    size = source.get("sizeLimit")
    size_bytes = None if size is None else _bytes(str(size), f"{where}.emptyDir.sizeLimit")
    return Volume(name, "memory" if medium else "scratch", size_bytes=size_bytes)


def _files(kind: str, source: Manifest, surroundings: Surroundings, where: str) -> tuple[VolumeFile, ...]:
    """Files of a config map or secret, all of its keys or those that `items` names."""
    refuse_unknown(source, frozenset({"name", "secretName", "items", "defaultMode", "optional"}), f"{where}.{kind}")
    name = source["name"] if kind == "configMap" else source["secretName"]
    maps = surroundings.references.config_maps if kind == "configMap" else surroundings.references.secrets
    if name not in maps:
        if source.get("optional"):
            return ()
        raise ValueError(f"{where}: {kind} {name} isn't among the documents; render it with the pods")
    mode = source.get("defaultMode", _FILE_MODE)
    items = source.get("items") or [{"key": key, "path": key} for key in maps[name]]
    return tuple(_file(item, maps[name], mode, f"{where}: {kind} {name}") for item in items)


def _file(item: Manifest, content: dict[str, bytes] | Any, mode: int, where: str) -> VolumeFile:
    refuse_unknown(item, frozenset({"key", "path", "mode"}), f"{where}: items")
    if item["key"] not in content:
        raise ValueError(f"{where}: has no key {item['key']}; it has {', '.join(sorted(content)) or 'none'}")
    path = Path(item["path"])
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{where}: path {item['path']} leaves the volume; give one inside it")
    return VolumeFile(str(path), content[item["key"]], item.get("mode") or mode)


def _claim(name: str, source: Manifest, surroundings: Surroundings, where: str) -> Volume:
    refuse_unknown(source, frozenset({"claimName", "readOnly"}), f"{where}.persistentVolumeClaim")
    claims = surroundings.references.claims
    if source["claimName"] not in claims:
        raise ValueError(f"{where}: claim {source['claimName']} isn't among the documents")
    return Volume(name, "folder", folder=_existing(claims[source["claimName"]], where))


def _host_path(name: str, source: Manifest, where: str) -> Volume:
    refuse_unknown(source, frozenset({"path", "type"}), f"{where}.hostPath")
    kind = source.get("type") or ""
    if kind not in {"", "Directory", "DirectoryOrCreate"}:
        raise ValueError(f"{where}.hostPath.type: {kind}; the sandbox knows folders only")
    folder = Path(source["path"])
    if kind == "DirectoryOrCreate":
        folder.mkdir(parents=True, exist_ok=True)
    return Volume(name, "folder", folder=_existing(folder, where))


def _existing(folder: Path, where: str) -> str:
    if not folder.is_dir():
        raise ValueError(f"{where}: {folder} isn't a folder of this machine; make it before the pod starts")
    return str(folder)


def _mounts(pod: Manifest, volumes: set[str]) -> tuple[VolumeMount, ...]:
    """The mounts of all containers: they share one root, so one path can't hold two volumes."""
    found: dict[str, VolumeMount] = {}
    spec = pod["spec"]
    sources = {volume["name"]: volume for volume in spec.get("volumes") or ()}
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        where = f"pod {pod['metadata']['name']}: volumeMounts of {container['name']}"
        for entry in container.get("volumeMounts") or ():
            refuse_unknown(entry, frozenset({"name", "mountPath", "readOnly"}), where)
            if entry["name"] not in volumes:
                raise ValueError(f"{where}: {entry['name']} isn't among the pod's volumes")
            mount = VolumeMount(_mount_path(entry["mountPath"], where), entry["name"], _read_only(entry, sources))
            if found.setdefault(mount.path, mount) != mount:
                raise ValueError(f"{where}: {mount.path} is mounted otherwise by another container")
    return tuple(sorted(found.values(), key=lambda mount: mount.path))


def _read_only(entry: Manifest, sources: dict[str, Manifest]) -> bool:
    """Config maps and secrets are read-only whatever the mount says, as the kubelet has them."""
    source = sources[entry["name"]]
    claim = source.get("persistentVolumeClaim") or {}
    return bool(entry.get("readOnly") or claim.get("readOnly") or "configMap" in source or "secret" in source)


def _mount_path(path: str, where: str) -> str:
    parts = Path(path)
    if not parts.is_absolute() or ".." in parts.parts or path == "/":
        raise ValueError(f"{where}: mountPath {path} isn't an absolute path below /")
    return str(parts)


def _bytes(quantity: str, where: str) -> int:
    found = _QUANTITY.fullmatch(quantity)
    if found is None:
        raise ValueError(f"{where}: {quantity} isn't a quantity such as 8Gi")
    return int(float(found[1]) * _FACTORS[found[2]])
