"""Look at a cluster once, with the user's own kubeconfig."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import urllib3
import yaml
from kubernetes import client, config

from workloads.operations.pending.observed import Document, Observed

TRAINER = ("trainer.kubeflow.org", "v1alpha1", "trainjobs")
_POOLS = ("karpenter.sh", "v1", "nodepools")
_CLAIMS = ("karpenter.sh", "v1", "nodeclaims")
_CLASSES = ("karpenter.k8s.aws", "v1", "ec2nodeclasses")
_JOB_LABEL = "jobset.sigs.k8s.io/jobset-name"
_CLUSTER_EVENTS = "default"
"""Namespace in which events about objects without one lie."""
TIMEOUT_S = (5.0, 20.0)
"""To connect, to read. Without it a cluster behind a closed endpoint would be waited for."""
_WRITES_IT = "pulumi stack output kubeconfig --show-secrets > kubeconfig"

_CONFIG: Any = config
"""The package's types end here: its loader has none, and what servers answer is any object."""


def connect(kubeconfig: Path | None, context: str | None) -> Any:
    """A client by that file, or by KUBECONFIG and ~/.kube/config. ValueError where it says no cluster."""
    if kubeconfig is not None and not kubeconfig.is_file():
        raise ValueError(f"--kubeconfig {kubeconfig}: there is no such file; write it with `{_WRITES_IT}`")
    try:
        return _CONFIG.new_client_from_config(
            config_file=None if kubeconfig is None else str(kubeconfig), context=context
        )
    except config.ConfigException as error:
        reason = str(error)
    except OSError as error:
        reason = error.strerror or str(error)
    except (yaml.YAMLError, TypeError, AttributeError, KeyError, UnicodeDecodeError):
        # The package reads what it expects, and breaks anywhere else.
        reason = "it isn't a kubeconfig"
    where = kubeconfig or "KUBECONFIG or ~/.kube/config"
    raise ValueError(
        f"{where}: no cluster can be taken from it ({reason}); give --kubeconfig FILE, for a stack: `{_WRITES_IT}`"
    )


def observe(api: Any, *, namespace: str, job: str) -> Observed:
    """What there is of the job and of the pools. ValueError where the cluster doesn't answer, or refuses."""
    # Asks for less where a client library would retry for a minute.
    api.rest_client.pool_manager.connection_pool_kw["retries"] = urllib3.Retry(total=0)
    core = client.CoreV1Api(api)
    with told(api):
        return Observed(
            now=datetime.now(UTC),
            train_job=_train_job(api, namespace, job),
            pods=_plain(api, core.list_namespaced_pod, namespace=namespace, label_selector=f"{_JOB_LABEL}={job}"),
            events=[
                event
                for space in dict.fromkeys((namespace, _CLUSTER_EVENTS))
                for event in _plain(api, core.list_namespaced_event, namespace=space)
            ],
            node_pools=_customs(api, *_POOLS),
            node_classes=_customs(api, *_CLASSES),
            node_claims=_customs(api, *_CLAIMS),
        )


def _train_job(api: Any, namespace: str, job: str) -> Document | None:
    group, version, plural = TRAINER
    try:
        found: Any = client.CustomObjectsApi(api).get_namespaced_custom_object(
            group, version, namespace, plural, job, _request_timeout=TIMEOUT_S
        )
    except client.ApiException as error:
        if error.status != 404:
            raise
        return None
    document: Document = found
    return document


def _customs(api: Any, group: str, version: str, plural: str) -> list[Document]:
    """All of a kind; none where the cluster doesn't know the kind, as without Karpenter."""
    try:
        listed: Any = client.CustomObjectsApi(api).list_cluster_custom_object(
            group, version, plural, _request_timeout=TIMEOUT_S
        )
    except client.ApiException as error:
        if error.status != 404:
            raise
        return []
    return list(listed["items"])


def _plain(api: Any, ask: Callable[..., Any], **arguments: str) -> list[Document]:
    """The items as the server gives them, not as the client's classes."""
    answer = ask(**arguments, _request_timeout=TIMEOUT_S)
    items: list[Document] = api.sanitize_for_serialization(answer)["items"]
    return items


@contextmanager
def told(api: Any) -> Iterator[None]:
    """What the cluster refuses, or that it doesn't answer, as a ValueError that is one sentence."""
    server = api.configuration.host
    try:
        yield
    except client.ApiException as error:
        said = _message(error)
        raise ValueError(
            f"the cluster at {server} refuses ({error.status}: {said}); look whose credentials the kubeconfig holds"
        ) from error
    except urllib3.exceptions.HTTPError as error:
        raise ValueError(
            f"the cluster at {server} doesn't answer ({_cause(error)}); look whether it is up, and whether "
            "platform.apiAccessCidrs lets you in"
        ) from error


def _message(error: client.ApiException) -> str:
    """The server's own sentence."""
    try:
        said = json.loads(error.body or "")["message"]
    except (ValueError, TypeError, KeyError):
        said = error.body or error.reason
    return " ".join(str(said).split())[:200]


def _cause(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return type(reason).__name__ if isinstance(reason, Exception) else str(reason)
