"""A Kubernetes API server by plain HTTPS, JSON in and out: enough for the keepers of the cluster and its tests."""

import base64
import json
import ssl
import tempfile
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import urllib3
import yaml

Document = dict[str, Any]

MANAGER = "topolab-e2e"
"""Field manager of what is applied here."""
_TIMEOUT = urllib3.Timeout(connect=2.0, read=20.0)
_PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class ApiError(Exception):
    """The server's answer when it isn't what was asked for; `message` is its own sentence."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class Unreachable(Exception):  # noqa: N818 - a state of the server, which tests ask for, and no fault of ours
    """Nobody answers at the server's address."""


class Api:
    """One server as one user. Safe for several threads."""

    def __init__(self, server: str, authority: bytes, *, certificate: bytes = b"", token: str = "") -> None:
        context = ssl.create_default_context(cadata=authority.decode())
        if certificate:
            with tempfile.NamedTemporaryFile(suffix=".pem") as file:  # the ssl module takes files only
                file.write(certificate)
                file.flush()
                context.load_cert_chain(file.name)
        self.server = server
        self._authority = authority
        self._pool = urllib3.PoolManager(ssl_context=context, timeout=_TIMEOUT, retries=False, maxsize=4)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._resources: dict[tuple[str, str], tuple[str, bool]] = {}

    @classmethod
    def of(cls, kubeconfig: Path) -> Self:
        """The current context of a kubeconfig that holds its certificates or token as data."""
        config = yaml.safe_load(kubeconfig.read_text())
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        pair = [base64.b64decode(user[key]) for key in ("client-certificate-data", "client-key-data") if key in user]
        authority = base64.b64decode(cluster["certificate-authority-data"])
        return cls(cluster["server"], authority, certificate=b"".join(pair), token=user.get("token", ""))

    def as_token(self, token: str) -> "Api":
        """The same server for another user; an empty token: nobody."""
        return Api(self.server, self._authority, token=token)

    def get(self, path: str, **query: str) -> Document:
        """One object, or a list's whole answer."""
        return self._call("GET", path, query)

    def items(self, path: str, **query: str) -> list[Document]:
        """The objects of a list."""
        found: list[Document] = self.get(path, **query)["items"]
        return found

    def text(self, path: str) -> str:
        """An answer that isn't JSON (`/readyz`)."""
        return self._send("GET", path, {}, None, "application/json").data.decode()

    def exists(self, path: str) -> bool:
        """Whether there is such an object."""
        try:
            self.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return True

    def create(self, path: str, body: Document, **query: str) -> Document:
        """POST to a collection or a subresource."""
        return self._call("POST", path, query, body)

    def patch(self, path: str, body: Document, *, kind: str = "merge", **query: str) -> Document:
        """`merge` or `strategic`."""
        return self._call("PATCH", path, query, body, _PATCHES[kind])

    def delete(self, path: str, *, grace_s: int | None = None, uid: str | None = None, **query: str) -> None:
        """Ask for deletion; what isn't there is deleted."""
        options: Document = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        try:
            self._call("DELETE", path, query, options)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    def apply(self, document: Document, *, dry_run: bool = False) -> Document:
        """Server-side apply with strict fields, as kubectl and Pulumi do: an unknown field is refused."""
        query = {"fieldManager": MANAGER, "force": "true", "fieldValidation": "Strict"}
        query |= {"dryRun": "All"} if dry_run else {}
        return self._call("PATCH", self.path(document), query, document, _PATCHES["apply"])

    def path(self, document: Mapping[str, Any]) -> str:
        """Where a document lives, by the server's own list of kinds."""
        version, metadata = document["apiVersion"], document["metadata"]
        base = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        plural, namespaced = self._resource(base, document["kind"])
        folder = f"/namespaces/{metadata.get('namespace', 'default')}" if namespaced else ""
        return f"{base}{folder}/{plural}/{metadata['name']}"

    def _resource(self, base: str, kind: str) -> tuple[str, bool]:
        if (base, kind) not in self._resources:
            for entry in self.get(base)["resources"]:
                if "/" not in entry["name"]:
                    self._resources[base, entry["kind"]] = (entry["name"], entry["namespaced"])
        if (base, kind) not in self._resources:
            raise ApiError(404, "NotFound", f"no kind {kind} at {base}")
        return self._resources[base, kind]

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Document | None = None,
        content: str = "application/json",
    ) -> Document:
        answer = self._send(method, path, query, body, content)
        document: Document = json.loads(answer.data or b"{}")
        return document

    def _send(
        self, method: str, path: str, query: Mapping[str, str], body: Document | None, content: str
    ) -> urllib3.BaseHTTPResponse:
        try:
            answer = self._pool.request(
                method,
                self.server + path + (f"?{_encoded(query)}" if query else ""),
                body=None if body is None else json.dumps(body),
                headers={"Accept": "application/json", "Content-Type": content, **self._headers},
            )
        except urllib3.exceptions.HTTPError as error:
            raise Unreachable(f"{self.server} doesn't answer: {error}") from error
        if answer.status >= 400:
            raise _refusal(answer)
        return answer


def kubeconfig(server: str, authority: bytes, user: Mapping[str, str], namespace: str = "default") -> str:
    """A kubeconfig that works anywhere: nothing in it is a path."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "e2e",
                    "cluster": {
                        "server": server,
                        "certificate-authority-data": base64.b64encode(authority).decode(),
                    },
                }
            ],
            "users": [{"name": "e2e", "user": dict(user)}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e", "namespace": namespace}}],
            "current-context": "e2e",
        }
    )


def _encoded(query: Mapping[str, str]) -> str:
    return urllib.parse.urlencode(query)


def _named(entries: list[Document], name: str) -> Document:
    return next(entry for entry in entries if entry["name"] == name)


def _refusal(answer: urllib3.BaseHTTPResponse) -> ApiError:
    try:
        status = json.loads(answer.data)
        return ApiError(answer.status, status.get("reason", ""), status.get("message", ""))
    except (ValueError, AttributeError):
        return ApiError(answer.status, answer.reason or "", answer.data.decode(errors="replace"))
