"""Webhook configurations of system pods trust the authority that issued their serving certificates."""

import base64
from collections.abc import Set

from tests.e2e.cluster.api import Api, Document

_GROUP = "/apis/admissionregistration.k8s.io/v1"
_KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


def trust(api: Api, authority: bytes, namespaces: Set[str]) -> None:
    """Write our CA into every webhook that calls a Service of these namespaces, as cert-manager's injector does.

    The field is no part of the charts, so a later `helm upgrade` leaves it alone.
    """
    bundle = base64.b64encode(authority).decode()
    for kind in _KINDS:
        for configuration in api.items(f"{_GROUP}/{kind}"):
            if distrusting := _distrusting(configuration, bundle, namespaces):
                hooks = [{"name": name, "clientConfig": {"caBundle": bundle}} for name in distrusting]
                path = f"{_GROUP}/{kind}/{configuration['metadata']['name']}"
                api.patch(path, {"webhooks": hooks}, kind="strategic")


def _distrusting(configuration: Document, bundle: str, namespaces: Set[str]) -> list[str]:
    return [
        hook["name"]
        for hook in configuration.get("webhooks") or ()
        if hook["clientConfig"].get("service", {}).get("namespace") in namespaces
        and hook["clientConfig"].get("caBundle") != bundle
    ]
