"""A kubeconfig as the stand-in reads it: which cluster, as whom, in which namespace. Pure but for reading files."""

import base64
import json
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.providers.serving import RefusedError


@dataclass(frozen=True, kw_only=True)
class Target:
    """The context in use. `cluster` and `user` are the kubeconfig's own entries."""

    cluster: Mapping[str, Any]
    user: Mapping[str, Any]
    namespace: str

    @property
    def server(self) -> str:
        """URL of the API server, without a slash at its end."""
        return str(self.cluster["server"]).rstrip("/")

    def headers(self) -> dict[str, str]:
        """Who asks, where it is a token that says so."""
        token = self.user.get("token")
        return {"Authorization": f"Bearer {token}"} if token else {}


def parse(kubeconfig: str) -> dict[str, Any]:
    """The document of a kubeconfig given as text or as a path, as the real provider takes both."""
    text = kubeconfig
    if "\n" not in kubeconfig and not kubeconfig.lstrip().startswith("{"):
        path = Path(kubeconfig).expanduser()
        if not path.is_file():
            raise RefusedError(f"provider kubernetes, kubeconfig: no file {kubeconfig!r}, and it is no kubeconfig text")
        text = path.read_text()
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise RefusedError(f"provider kubernetes, kubeconfig: no YAML: {error}") from None
    if not isinstance(document, dict) or not document.get("clusters"):
        raise RefusedError("provider kubernetes, kubeconfig: it names no cluster")
    return document


def text(document: Mapping[str, Any]) -> str:
    """A kubeconfig for a process of its own."""
    return json.dumps(document)


def target(document: Mapping[str, Any], context: str | None = None, namespace: str | None = None) -> Target:
    """The cluster, user and namespace of a context (None: the current one)."""
    name = context or document.get("current-context")
    chosen = _entry(document, "context", name)
    user = _entry(document, "user", chosen["user"])
    if "exec" in user or "auth-provider" in user:
        raise RefusedError(
            f"provider kubernetes, kubeconfig, user {chosen['user']!r}: the stand-in runs no credential plugin; "
            "give a token or a client certificate"
        )
    return Target(
        cluster=_entry(document, "cluster", chosen["cluster"]),
        user=user,
        namespace=namespace or chosen.get("namespace") or "default",
    )


def identity(document: Mapping[str, Any], context: str | None) -> Mapping[str, Any] | None:
    """What the real provider takes for the cluster's identity: the entry of its cluster. None: not to be found."""
    try:
        return target(document, context).cluster
    except RefusedError:
        return None


def tls(chosen: Target) -> ssl.SSLContext:
    """The client's side of TLS: the cluster's authority, and the user's certificate if there is one."""
    authority = _bytes(chosen.cluster, "certificate-authority")
    if authority is None:
        settings = ssl.create_default_context()
    else:
        settings = ssl.create_default_context(cadata=authority.decode())
    certificate, key = _bytes(chosen.user, "client-certificate"), _bytes(chosen.user, "client-key")
    if certificate is not None and key is not None:
        # Python loads a certificate from a file only; it is gone before anybody else could look.
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(certificate + b"\n" + key)
            pair.flush()
            settings.load_cert_chain(pair.name)
    return settings


def _entry(document: Mapping[str, Any], kind: str, name: Any) -> Mapping[str, Any]:
    found = [entry for entry in document.get(f"{kind}s") or [] if entry.get("name") == name]
    if not found:
        raise RefusedError(f"provider kubernetes, kubeconfig: no {kind} {name!r}")
    entry: Mapping[str, Any] = found[0].get(kind) or {}
    return entry


def _bytes(entry: Mapping[str, Any], key: str) -> bytes | None:
    if f"{key}-data" in entry:
        return base64.b64decode(entry[f"{key}-data"])
    return Path(entry[key]).read_bytes() if key in entry else None
