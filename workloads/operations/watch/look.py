"""Look at a run, and suspend it: the calls."""

from typing import Any

from kubernetes import client

from workloads.operations.pending.observe import TIMEOUT_S, TRAINER, observe, told
from workloads.operations.watch.watched import Watched, first_pod, watched

_LINES = 40
"""More than the steps that a progress is reckoned from, and what a library says between them."""


def look(api: Any, *, namespace: str, job: str) -> Watched:
    """Once. ValueError where the cluster doesn't answer, or refuses."""
    observed = observe(api, namespace=namespace, job=job)
    pod = first_pod(observed)
    return watched(job, observed, [] if pod is None else _log(api, namespace, pod))


def suspend(api: Any, *, namespace: str, job: str) -> None:
    """End the job's pods; the TrainJob stays, and so does its platform."""
    group, version, plural = TRAINER
    body = {"spec": {"suspend": True}}
    with told(api):
        client.CustomObjectsApi(api).patch_namespaced_custom_object(
            group, version, namespace, plural, job, body, _request_timeout=TIMEOUT_S
        )


def _log(api: Any, namespace: str, pod: str) -> list[str]:
    """The last lines; none where the container hasn't begun, or its node just went: the next look tells more."""
    try:
        text: str = client.CoreV1Api(api).read_namespaced_pod_log(
            pod, namespace, container="node", tail_lines=_LINES, _request_timeout=TIMEOUT_S
        )
    except client.ApiException as error:
        if error.status in (400, 404, 500, 502, 504):
            return []
        with told(api):
            raise
    return text.splitlines()
