"""A Pod as its author wrote it: without what the API server and its admission plug-ins add to any Pod.

Each field is taken away at its default alone, so whatever else a Pod asks for stays and is honoured or refused.
Read in Kubernetes 1.35: pkg/apis/core/v1/defaults.go, plugin/pkg/admission/{serviceaccount,defaulttolerationseconds,
priority}.
"""

from collections.abc import Mapping
from typing import Any

_POD = {
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "enableServiceLinks": True,
    "terminationGracePeriodSeconds": 30,
    "serviceAccountName": "default",
    "priority": 0,
    "preemptionPolicy": "PreemptLowerPriority",
}
_CONTAINER = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
}
_FILE_MODE = 0o644
_VOLUMES: dict[str, dict[str, Any]] = {
    "configMap": {"defaultMode": _FILE_MODE},
    "secret": {"defaultMode": _FILE_MODE},
    "hostPath": {"type": ""},
}
_ADDED_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for state in ("not-ready", "unreachable")
]
_TOKEN = "kube-api-access-"
"""The volume of a service account's token begins so; it and its mounts are added where a Pod doesn't decline it."""


def without_defaults(pod: Mapping[str, Any]) -> dict[str, Any]:
    """The same Pod without them; the argument stays as it is."""
    spec = pod["spec"]
    tokens = {volume["name"] for volume in spec.get("volumes") or () if _is_token(volume)}
    kept = _unlike(
        spec, _POD | ({"serviceAccount": spec["serviceAccountName"]} if "serviceAccountName" in spec else {})
    )
    kept["tolerations"] = [one for one in spec.get("tolerations") or () if one not in _ADDED_TOLERATIONS]
    kept["volumes"] = [_volume(one) for one in spec.get("volumes") or () if one["name"] not in tokens]
    for kind in ("initContainers", "containers"):
        on_host = bool(spec.get("hostNetwork"))
        kept[kind] = [_container(one, tokens, on_host=on_host) for one in spec.get(kind) or ()]
    lists = ("tolerations", "volumes", "initContainers")
    return {**pod, "spec": {key: value for key, value in kept.items() if value or key not in lists}}


def _unlike(fields: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in defaults or value != defaults[key]}


def _is_token(volume: Mapping[str, Any]) -> bool:
    return volume["name"].startswith(_TOKEN) and "projected" in volume


def _volume(volume: Mapping[str, Any]) -> dict[str, Any]:
    return {kind: _unlike(source, _VOLUMES[kind]) if kind in _VOLUMES else source for kind, source in volume.items()}


def _container(container: Mapping[str, Any], tokens: set[str], *, on_host: bool) -> dict[str, Any]:
    kept = _unlike(container, {**_CONTAINER, "imagePullPolicy": _pull_policy(container.get("image") or "")})
    if "env" in kept:
        kept["env"] = [_variable(one) for one in kept["env"]]
    if "ports" in kept:
        kept["ports"] = [_port(one, on_host=on_host) for one in kept["ports"]]
    if "volumeMounts" in kept:
        kept["volumeMounts"] = [mount for mount in kept["volumeMounts"] if mount["name"] not in tokens]
    return {key: value for key, value in kept.items() if key != "volumeMounts" or value}


def _pull_policy(image: str) -> str:
    """Always for `latest`, named or meant."""
    if "@" in image:
        return "IfNotPresent"
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return "IfNotPresent" if colon and tag != "latest" else "Always"


def _variable(entry: Mapping[str, Any]) -> dict[str, Any]:
    field = (entry.get("valueFrom") or {}).get("fieldRef")
    if field is None:
        return dict(entry)
    return {**entry, "valueFrom": {"fieldRef": _unlike(field, {"apiVersion": "v1"})}}


def _port(port: Mapping[str, Any], *, on_host: bool) -> dict[str, Any]:
    """On the host's network a container's port is the host's."""
    own = {"hostPort": port["containerPort"]} if on_host else {}
    return _unlike(port, {"protocol": "TCP", **own})
