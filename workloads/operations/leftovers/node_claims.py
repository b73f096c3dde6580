"""What Karpenter still wants in a cluster, asked of its API server."""

from typing import Any

import urllib3.exceptions
import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

_CONNECT_S, _READ_S = 5.0, 30.0


class NoAnswerError(Exception):
    """The API server can't be asked, for a reason that the message names."""


def node_claims(kubeconfig: str) -> list[str]:
    """NodeClaims by name, with pool and instance; none too where the kind is gone. NoAnswerError says why not.

    `kubeconfig` is the text that EKS's users get: its credentials come from `aws eks get-token`.
    """
    try:
        answer = _custom_objects(kubeconfig).list_cluster_custom_object(
            "karpenter.sh", "v1", "nodeclaims", _request_timeout=(_CONNECT_S, _READ_S)
        )
    except ApiException as error:
        if error.status == 404:
            return []
        raise NoAnswerError(f"{error.status} {error.reason}") from error
    # A kubeconfig or its credentials' command that is broken, a name that doesn't resolve, nobody at the port.
    except (config.ConfigException, urllib3.exceptions.HTTPError, OSError) as error:
        raise NoAnswerError(" ".join(str(error).split())) from error
    return sorted(_described(claim) for claim in answer["items"])


def _custom_objects(kubeconfig: str) -> Any:
    settings = client.Configuration()
    # Who waits asks again itself, and says so.
    settings.retries = 0
    connect: Any = config.new_client_from_config_dict
    return client.CustomObjectsApi(connect(yaml.safe_load(kubeconfig), client_configuration=settings))


def _described(claim: dict[str, Any]) -> str:
    pool = claim["metadata"].get("labels", {}).get("karpenter.sh/nodepool", "no pool")
    # aws:///us-east-1b/i-0123
    instance = claim.get("status", {}).get("providerID", "").rsplit("/", 1)[-1]
    return f"{claim['metadata']['name']} (pool {pool}{f', {instance}' if instance else ''})"
