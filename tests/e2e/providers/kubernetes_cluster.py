"""The API server over HTTPS, as far as the stand-in needs it: discovery, get, create, apply, delete.

A refused connection is tried again for `patience_s`: reads, applies and deletes also when it broke in between,
creates only when nothing was sent. (The real provider's client tries refused connections again only while it
waits for something, so a server that is away for a moment fails it more often than this.) A cluster that was
not reached within the patience at the first call stays unreachable for this process, as for the real one.
"""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import urllib3

from tests.e2e.providers.kubernetes_config import Target, tls
from tests.e2e.providers.kubernetes_shape import CREATOR
from tests.e2e.providers.serving import RefusedError

PATIENCE_S = 40.0
"""An API server that restarts is back within."""
_PAUSE_S = 0.3
_REQUEST_S = urllib3.Timeout(connect=60.0, read=60.0)
"""A server that has just started listens before it answers; a connection is refused at once or not at all."""
_TOO_MANY, _AWAY = 429, 503

Document = dict[str, Any]
Body = Document | list[Document]


class UnreachableError(RefusedError):
    """Nobody answers there."""

    def __init__(self, why: str) -> None:
        super().__init__(f"configured Kubernetes cluster is unreachable: {why}")


class NoSuchKindError(RefusedError):
    """The server serves no such kind (now): its CRD isn't installed."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f"no matches for kind {kind!r} in version {api_version!r}: is its CRD installed?")


class ApiError(RefusedError):
    """What the server answered instead. `managers`: with whom an apply conflicts."""

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(str(body.get("message") or f"HTTP {status}"))
        self.status = status
        self.reason = str(body.get("reason") or status)
        causes = (body.get("details") or {}).get("causes") or []
        self.managers = {part for cause in causes for part in str(cause.get("message", "")).split('"')[1:2]}


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where the objects of a kind are."""

    prefix: str
    plural: str
    namespaced: bool

    def path(self, namespace: str | None, name: str | None = None) -> str:
        """URL path of the collection, or of one object."""
        within = f"/namespaces/{quote(namespace)}" if self.namespaced and namespace else ""
        return f"{self.prefix}{within}/{self.plural}" + (f"/{quote(name)}" if name else "")


@dataclass
class Cluster:
    """One cluster, for many threads at once. `stopping`: ends every wait. `first_s`: patience of the first call."""

    target: Target
    stopping: threading.Event
    patience_s: float = PATIENCE_S
    first_s: float = PATIENCE_S
    _pool: urllib3.PoolManager = field(init=False)
    _endpoints: dict[tuple[str, str], Endpoint] = field(init=False, default_factory=dict)
    _reached: bool = field(init=False, default=False)
    _unreachable: str | None = field(init=False, default=None)
    _first: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._pool = urllib3.PoolManager(
            ssl_context=tls(self.target), timeout=_REQUEST_S, retries=False, maxsize=32, headers=self.target.headers()
        )

    def reach(self) -> None:
        """UnreachableError unless somebody has answered; the patience is spent once, by whoever asks first."""
        if self._reached:
            return
        with self._first:
            if self._unreachable is not None:
                raise UnreachableError(self._unreachable)
            if self._reached:
                return
            try:
                self._request("GET", "/version", patience_s=self.first_s)
            except UnreachableError as error:
                self._unreachable = str(error).partition(": ")[2]
                raise
            self._reached = True

    def endpoint(self, api_version: str, kind: str) -> Endpoint:
        """Where a kind is served; NoSuchKindError. A kind that was found once is looked up no more."""
        known = self._endpoints.get((api_version, kind))
        if known is not None:
            return known
        prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        for served in self._listing(prefix):
            if "/" not in served["name"]:
                endpoint = Endpoint(prefix=prefix, plural=served["name"], namespaced=served["namespaced"])
                self._endpoints[api_version, served["kind"]] = endpoint
        if (api_version, kind) not in self._endpoints:
            raise NoSuchKindError(api_version, kind)
        return self._endpoints[api_version, kind]

    def forget(self, api_version: str, kind: str) -> None:
        """Look the kind up again: its CRD may be gone."""
        self._endpoints.pop((api_version, kind), None)

    def get(self, document: Document) -> Document:
        """The live object of that kind, namespace and name."""
        endpoint = self._endpoint_of(document)
        return self._call("GET", endpoint.path(_namespace(document), _name(document)))

    def create(self, document: Document, *, dry_run: bool = False) -> Document:
        """A new object; ApiError AlreadyExists."""
        endpoint = self._endpoint_of(document)
        query = {"fieldManager": CREATOR, "fieldValidation": "Warn", **_dry(dry_run)}
        return self._call("POST", endpoint.path(_namespace(document)), query, _fitted(document, endpoint))

    def apply(self, document: Document, manager: str, *, force: bool = False, dry_run: bool = False) -> Document:
        """Server-side apply as `manager`; ApiError Conflict where another manages a field, unless forced."""
        endpoint = self._endpoint_of(document)
        query = {"fieldManager": manager, "force": str(force).lower(), "fieldValidation": "Warn", **_dry(dry_run)}
        path = endpoint.path(_namespace(document), _name(document))
        return self._call("PATCH", path, query, _fitted(document, endpoint))

    def replace_managed_fields(self, live: Document, fields: list[Document]) -> None:
        """Who manages which field of an object from now on; refused when it has changed since it was read."""
        endpoint = self._endpoint_of(live)
        version = {"op": "test", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]}
        change = {"op": "replace", "path": "/metadata/managedFields", "value": fields}
        self._call("PATCH", endpoint.path(_namespace(live), _name(live)), {}, [version, change])

    def delete(self, document: Document, propagation: str) -> None:
        """Ask for its deletion."""
        endpoint = self._endpoint_of(document)
        path = endpoint.path(_namespace(document), _name(document))
        self._call("DELETE", path, {}, {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation})

    def listed(self, api_version: str, kind: str, namespace: str | None, selector: str = "") -> list[Document]:
        """Objects of a kind, in one namespace or (None) in all."""
        endpoint = self.endpoint(api_version, kind)
        found = self._call("GET", endpoint.path(namespace), {"labelSelector": selector})["items"]
        return [{"apiVersion": api_version, "kind": kind, **item} for item in found]

    def _endpoint_of(self, document: Document) -> Endpoint:
        return self.endpoint(document["apiVersion"], document["kind"])

    def _listing(self, prefix: str) -> list[Document]:
        try:
            resources: list[Document] = self._call("GET", prefix)["resources"]
        except ApiError as error:
            if error.status == 404:
                return []
            raise
        return resources

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
    ) -> Document:
        self.reach()
        return self._request(method, path, query, body, patience_s=self.patience_s)

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
        *,
        patience_s: float,
    ) -> Document:
        url = f"{self.target.server}{path}" + (f"?{urlencode(query)}" if query else "")
        give_up = time.monotonic() + patience_s
        while True:
            try:
                return self._once(method, url, body)
            except urllib3.exceptions.HTTPError as error:
                sent = not isinstance(error, urllib3.exceptions.NewConnectionError)
                if (sent and method == "POST") or time.monotonic() > give_up or self.stopping.wait(_PAUSE_S):
                    raise UnreachableError(f"{self.target.server}: {_why(error)}") from None
            except ApiError as error:
                # Both say: nothing was done, come again.
                if error.status not in {_TOO_MANY, _AWAY} or time.monotonic() > give_up or self.stopping.wait(_PAUSE_S):
                    raise

    def _once(self, method: str, url: str, body: Body | None) -> Document:
        headers = {**self.target.headers(), "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = _content_type(method, body)
        data = None if body is None else json.dumps(body).encode()
        response = self._pool.request(method, url, body=data, headers=headers, retries=False)
        try:
            answer = json.loads(response.data or b"{}")
        except ValueError:
            answer = {"message": response.data.decode(errors="replace")[:500]}
        if response.status >= 400:
            raise ApiError(response.status, answer)
        found: Document = answer
        return found


def _fitted(document: Document, endpoint: Endpoint) -> Document:
    """The body: a namespace that was assumed before the kind was known is taken back."""
    metadata = {key: value for key, value in document["metadata"].items() if endpoint.namespaced or key != "namespace"}
    return {**document, "metadata": metadata}


def _content_type(method: str, body: Body) -> str:
    if method != "PATCH":
        return "application/json"
    return "application/json-patch+json" if isinstance(body, list) else "application/apply-patch+yaml"


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}


def _namespace(document: Document) -> str | None:
    found: str | None = document["metadata"].get("namespace")
    return found


def _name(document: Document) -> str:
    return str(document["metadata"]["name"])


def _why(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error)
