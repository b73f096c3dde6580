"""What the kubelet says of a pod in each part of its life, as patches of its status. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.e2e.kubelet.machine import stamp
from workloads.lab.pod_program import PodResult

Status = dict[str, Any]

LOG_BYTES, LOG_LINES = 2048, 80
"""Of a failed container's log, where its terminationMessagePolicy asks for it (kubelet's own limits)."""


@dataclass(frozen=True, kw_only=True)
class Times:
    """When the kubelet saw the pod, and when its processes began and ended."""

    seen: datetime
    began: datetime
    ended: datetime


def waiting(pod: Mapping[str, Any], since: datetime, reason: str, message: str = "") -> Status:
    """Bound here, not yet running."""
    state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    return {
        "phase": "Pending",
        "hostIP": "127.0.0.1",
        "startTime": stamp(since),
        "conditions": _conditions(since, initialized=False, ready=False),
        **_statuses(pod, state, state, ready=False),
    }


def running(pod: Mapping[str, Any], times: Times, address: str | None) -> Status:
    """Its processes run.

    The sandbox tells of init containers at the pod's end only, so a pod that has some stays Pending until then.
    """
    begun = {"running": {"startedAt": stamp(times.began)}}
    if pod["spec"].get("initContainers"):
        behind = {"waiting": {"reason": "PodInitializing"}}
        return {
            **waiting(pod, times.seen, "PodInitializing"),
            **_address(address),
            **_statuses(pod, begun, behind, ready=False),
        }
    return {
        "phase": "Running",
        "hostIP": "127.0.0.1",
        "startTime": stamp(times.seen),
        **_address(address),
        "conditions": _conditions(times.began, initialized=True, ready=True),
        **_statuses(pod, {}, begun, ready=True),
    }


def ended(pod: Mapping[str, Any], times: Times, result: PodResult, log: str) -> Status:
    """It ended; `log` is what its container printed."""
    failed = {"terminated": _terminated(times, result.exit_code, _reason(result), _message(pod, result, log))}
    done = {"terminated": _terminated(times, 0, "Completed", "")}
    in_main = result.container == pod["spec"]["containers"][0]["name"]
    statuses = _statuses(pod, done, failed, ready=False)
    if not in_main:
        statuses = _statuses(pod, done, {"waiting": {"reason": "PodInitializing"}}, ready=False)
        statuses["initContainerStatuses"] = _up_to(statuses["initContainerStatuses"], result.container, failed)
    overdue = result.reason == "DeadlineExceeded"
    return {
        "phase": "Succeeded" if result.exit_code == 0 and not overdue else "Failed",
        **({"reason": result.reason, "message": result.message} if overdue else {}),
        "conditions": _conditions(times.ended, initialized=in_main, ready=False),
        **statuses,
    }


def last_words(log: str) -> str:
    """The end of a log, as the kubelet takes it for a message."""
    lines = "".join(log.splitlines(keepends=True)[-LOG_LINES:])
    return lines.encode()[-LOG_BYTES:].decode(errors="ignore")


def _reason(result: PodResult) -> str:
    """Kubernetes' own word: a container that fails, in init or after it, ends with Error."""
    return "Error" if result.reason in {"InitError", "DeadlineExceeded"} else result.reason


def _message(pod: Mapping[str, Any], result: PodResult, log: str) -> str:
    containers = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
    container = next(one for one in containers if one["name"] == result.container)
    if result.exit_code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        return last_words(log)
    return result.message if result.reason == "StartError" else ""


def _terminated(times: Times, code: int, reason: str, message: str) -> Status:
    return {
        "exitCode": code,
        "reason": reason,
        "startedAt": stamp(times.began),
        "finishedAt": stamp(times.ended),
        **({"message": message} if message else {}),
    }


def _up_to(statuses: Sequence[Status], container: str, failed: Status) -> list[Status]:
    """Init containers before the failed one completed, those behind it never began."""
    names = [status["name"] for status in statuses]
    at = names.index(container)
    behind = {"waiting": {"reason": "PodInitializing"}}
    return [
        status if index < at else {**status, "state": failed if index == at else behind, "ready": False}
        for index, status in enumerate(statuses)
    ]


def _address(address: str | None) -> Status:
    """None on the loopback: EndpointSlices refuse its addresses."""
    return {} if address is None else {"podIP": address, "podIPs": [{"ip": address}]}


def _conditions(since: datetime, *, initialized: bool, ready: bool) -> list[Status]:
    values = {"Initialized": initialized, "Ready": ready, "ContainersReady": ready}
    return [{"type": kind, "status": str(value), "lastTransitionTime": stamp(since)} for kind, value in values.items()]


def _statuses(pod: Mapping[str, Any], init: Status, main: Status, *, ready: bool) -> Status:
    both = {"initContainerStatuses": init, "containerStatuses": main}
    kinds = {"initContainerStatuses": "initContainers", "containerStatuses": "containers"}
    return {
        key: [
            {
                "name": container["name"],
                "image": container.get("image", ""),
                "imageID": "",
                "ready": ready or (key == "initContainerStatuses" and "terminated" in state),
                "started": ready,
                "restartCount": 0,
                "state": state,
            }
            for container in pod["spec"][kinds[key]]
        ]
        for key, state in both.items()
        if pod["spec"].get(kinds[key])
    }
