"""What a system pod's container becomes on this host: a command line, an environment and the files it mounts."""

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.e2e.cluster.api import Api, ApiError, Document
from tests.e2e.cluster.controllers import Controller, Ports
from tests.e2e.cluster.quantities import in_units_of
from workloads.lab.pod_environment import expand

_CERTIFICATES = "serving-certs"
"""Last part of the folder in which every controller-runtime webhook looks for tls.crt and tls.key."""


class NotStartable(ValueError):  # noqa: N818 - the pod waits, as the kubelet lets it: no error of ours
    """Why a container waits: the kubelet's own word and a sentence."""

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class Program:
    """A container ready to be run."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path


@dataclass(frozen=True, kw_only=True)
class Place:
    """What the host gives to a container."""

    folder: Path
    """Its own; the files that it mounts lie under `mounts`."""
    tools: Path
    ports: Ports
    address: str
    """The pod's, which nobody dials."""
    write_certificates: Callable[[Path], None]
    """Put a serving certificate into a folder."""
    surroundings: Mapping[str, str]
    """Variables that every container of this cluster has, its identities among them."""


def prepare(pod: Document, controller: Controller, place: Place, api: Api) -> Program:
    """Write its files and resolve the rest. NotStartable for a source that isn't there, or isn't known here."""
    container = pod["spec"]["containers"][0]
    mounts = _mount(pod, container, controller, place, api)
    variables = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(place.folder),
        "HOSTNAME": pod["metadata"]["name"],
        "TMPDIR": str(place.folder / "mounts" / "tmp"),
        **place.surroundings,
    }
    variables |= _environment(pod, container, place.address, variables, api)
    words = [expand(word, variables) for word in container.get("args") or ()]
    return Program(
        command=(str(place.tools / controller.binary), *(_moved(word, mounts) for word in words)),
        environment={key: _moved(value, mounts) for key, value in variables.items()}
        | controller.environment(variables, place.ports),
        folder=place.folder,
    )


def merged(below: Document, above: Document) -> Document:
    """`above` laid over `below`, mapping by mapping."""
    result = dict(below)
    for key, value in above.items():
        inner = result.get(key)
        result[key] = merged(inner, value) if isinstance(value, dict) and isinstance(inner, dict) else value
    return result


def container_ports(pod: Document) -> dict[str | int, int]:
    """Container ports by number and by name, as probes and Services name them."""
    found: dict[str | int, int] = {}
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            found[port["containerPort"]] = port["containerPort"]
            if "name" in port:
                found[port["name"]] = port["containerPort"]
    return found


def _moved(text: str, mounts: Mapping[str, Path]) -> str:
    for path in sorted(mounts, key=len, reverse=True):
        text = text.replace(path, str(mounts[path]))
    return text


def _mount(pod: Document, container: Document, controller: Controller, place: Place, api: Api) -> dict[str, Path]:
    """Write each mounted volume; its path in the container to its path here."""
    (place.folder / "mounts" / "tmp").mkdir(parents=True, exist_ok=True)
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    mounts = {}
    for mount in container.get("volumeMounts") or ():
        here = place.folder / "mounts" / mount["mountPath"].lstrip("/")
        mounts[mount["mountPath"]] = here
        if here.name == _CERTIFICATES:
            place.write_certificates(here)
            continue
        content = _content(pod, volumes[mount["name"]], api)
        files = {here: content[mount["subPath"]]} if "subPath" in mount else _files(here, content)
        for path, data in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_configured(data, controller.configuration(place.ports)))
    return mounts


def _files(folder: Path, content: Mapping[str, bytes]) -> dict[Path, bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    return {folder / key: data for key, data in content.items()}


def _configured(data: bytes, over: Document) -> bytes:
    """The controller's configuration with our values over it; any other file as it is."""
    if not over or b"kind: Configuration" not in data:
        return data
    return yaml.safe_dump(merged(yaml.safe_load(data), over)).encode()


def _content(pod: Document, volume: Document, api: Api) -> dict[str, bytes]:
    namespace = pod["metadata"]["namespace"]
    if source := volume.get("configMap"):
        return _keys(api, namespace, "configmaps", source["name"], optional=source.get("optional", False))
    if source := volume.get("secret"):
        return _keys(api, namespace, "secrets", source["secretName"], optional=source.get("optional", False))
    if "emptyDir" in volume or "projected" in volume:  # the token is in the kubeconfig
        return {}
    kind = next(key for key in volume if key != "name")
    raise NotStartable("CreateContainerConfigError", f"volume {volume['name']}: {kind} isn't known to system nodes")


def _keys(api: Api, namespace: str, kind: str, name: str, *, optional: bool) -> dict[str, bytes]:
    try:
        found = api.get(f"/api/v1/namespaces/{namespace}/{kind}/{name}")
    except ApiError as error:
        if error.status == 404 and optional:
            return {}
        raise NotStartable("CreateContainerConfigError", error.message) from error
    if kind == "secrets":
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}
    return {key: value.encode() for key, value in (found.get("data") or {}).items()}


def _environment(
    pod: Document, container: Document, address: str, known: Mapping[str, str], api: Api
) -> dict[str, str]:
    own = dict(_from_maps(pod, container, api))
    for entry in container.get("env") or ():
        value = (
            expand(entry.get("value") or "", {**known, **own})
            if "valueFrom" not in entry
            else _value(pod, container, entry, address, api)
        )
        if value is not None:
            own[entry["name"]] = value
    return own


def _from_maps(pod: Document, container: Document, api: Api) -> Iterator[tuple[str, str]]:
    for source in container.get("envFrom") or ():
        kind, reference = ("configmaps", "configMapRef") if "configMapRef" in source else ("secrets", "secretRef")
        where = source[reference]
        content = _keys(api, pod["metadata"]["namespace"], kind, where["name"], optional=where.get("optional", False))
        for key, value in content.items():
            yield source.get("prefix", "") + key, value.decode()


def _value(pod: Document, container: Document, entry: Document, address: str, api: Api) -> str | None:
    kind, source = next(iter(entry["valueFrom"].items()))
    if kind == "fieldRef":
        return _field(pod, source["fieldPath"], address, entry["name"])
    if kind == "resourceFieldRef":
        return _resource(container, source, entry["name"])
    if kind not in ("configMapKeyRef", "secretKeyRef"):
        raise NotStartable("CreateContainerConfigError", f"env {entry['name']}: {kind} isn't known to system nodes")
    optional = source.get("optional", False)
    plural = "configmaps" if kind == "configMapKeyRef" else "secrets"
    content = _keys(api, pod["metadata"]["namespace"], plural, source["name"], optional=optional)
    if source["key"] not in content:
        if optional:
            return None
        sentence = f"env {entry['name']}: {plural} {source['name']} has no key {source['key']}"
        raise NotStartable("CreateContainerConfigError", sentence)
    return content[source["key"]].decode()


def _field(pod: Document, path: str, address: str, name: str) -> str:
    fields = {
        "metadata.name": pod["metadata"]["name"],
        "metadata.namespace": pod["metadata"]["namespace"],
        "metadata.uid": pod["metadata"]["uid"],
        "spec.nodeName": pod["spec"]["nodeName"],
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName", "default"),
        "status.podIP": address,
        "status.hostIP": "127.0.0.1",
    }
    if path not in fields:
        sentence = f"env {name}: fieldPath {path} isn't known to system nodes; they know {', '.join(fields)}"
        raise NotStartable("CreateContainerConfigError", sentence)
    return str(fields[path])


def _resource(container: Document, source: Document, name: str) -> str:
    kind, _, resource = source["resource"].partition(".")
    given = (container.get("resources") or {}).get(kind, {}).get(resource)
    if given is None:
        sentence = f"env {name}: the container has no {source['resource']}; state it"
        raise NotStartable("CreateContainerConfigError", sentence)
    return str(in_units_of(str(given), source.get("divisor", "1")))
