"""What the pods of an arm refer to: config maps, secrets and claims, looked up in the arm's own documents."""

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Manifest = Mapping[str, Any]
"""A Kubernetes object as a plain dict."""


@dataclass(frozen=True)
class References:
    """Everything that a pod may name."""

    config_maps: Mapping[str, Mapping[str, bytes]]
    secrets: Mapping[str, Mapping[str, bytes]]
    claims: Mapping[str, Path]
    """Claim name to the folder on this machine that its volume stands for."""


def look_up(documents: Iterable[Manifest]) -> References:
    """Collect ConfigMaps, Secrets and PersistentVolumeClaims; other kinds are no concern of a pod's.

    A volume's folder of type DirectoryOrCreate is made.

    Raises ValueError for a claim whose volume isn't among the documents or isn't a folder of this machine.
    """
    by_kind: dict[str, dict[str, Manifest]] = {}
    for document in documents:
        by_kind.setdefault(document["kind"], {})[document["metadata"]["name"]] = document
    volumes = by_kind.get("PersistentVolume", {})
    return References(
        config_maps={name: _config_map(document) for name, document in by_kind.get("ConfigMap", {}).items()},
        secrets={name: _secret(name, document) for name, document in by_kind.get("Secret", {}).items()},
        claims={
            name: _claim(name, document, volumes) for name, document in by_kind.get("PersistentVolumeClaim", {}).items()
        },
    )


def _config_map(document: Manifest) -> dict[str, bytes]:
    text = {key: value.encode() for key, value in (document.get("data") or {}).items()}
    return text | _decoded("ConfigMap", document["metadata"]["name"], document.get("binaryData") or {})


def _secret(name: str, document: Manifest) -> dict[str, bytes]:
    clear = {key: value.encode() for key, value in (document.get("stringData") or {}).items()}
    return _decoded("Secret", name, document.get("data") or {}) | clear


def _decoded(kind: str, name: str, values: Mapping[str, str]) -> dict[str, bytes]:
    decoded = {}
    for key, value in values.items():
        try:
            decoded[key] = base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{kind} {name}: the value of {key} isn't base64 ({error})") from error
    return decoded


def _claim(name: str, claim: Manifest, volumes: Mapping[str, Manifest]) -> Path:
    wanted = claim["spec"].get("volumeName")
    volume = volumes.get(wanted or "") or _bound_to(name, volumes)
    if volume is None:
        raise ValueError(f"PersistentVolumeClaim {name}: its volume {wanted or '(none named)'} isn't rendered")
    source = volume["spec"].get("hostPath") or {}
    if "path" not in source:
        kinds = ", ".join(sorted(key for key in volume["spec"] if key in {"csi", "nfs", "local"})) or "its kind"
        raise ValueError(
            f"PersistentVolume {volume['metadata']['name']}: {kinds} can't be mounted on this machine; "
            "a local machine's volume has spec.hostPath"
        )
    folder = Path(source["path"])
    if source.get("type") == "DirectoryOrCreate":
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _bound_to(claim: str, volumes: Mapping[str, Manifest]) -> Manifest | None:
    bound = (v for v in volumes.values() if (v["spec"].get("claimRef") or {}).get("name") == claim)
    return next(bound, None)
