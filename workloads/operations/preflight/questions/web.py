"""Registries of images and charts, and the model hub: one question each, no client of theirs needed."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import urllib3

MANIFESTS = ", ".join((
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
))  # fmt: skip
HUB = "https://huggingface.co"

_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, kw_only=True)
class Reference:
    """An image or an OCI chart, as registries want it asked."""

    host: str
    repository: str
    tag: str
    """A tag or a digest."""

    @property
    def base(self) -> str:
        """As Docker does, a registry of this computer speaks plain HTTP."""
        local = self.host.startswith(("localhost", "127."))
        return f"{'http' if local else 'https'}://{self.host}"


def parse_reference(text: str) -> Reference:
    """`host/repository:tag`, `@sha256:...`, or Docker Hub's short forms; of a tag and a digest the digest."""
    named, _, digest = text.partition("@")
    first, _, rest = named.partition("/")
    is_host = rest and ("." in first or ":" in first or first == "localhost")
    host, path = (first, rest) if is_host else ("registry-1.docker.io", named if "/" in named else f"library/{named}")
    repository, colon, tag = path.rpartition(":")
    if not colon:
        repository, tag = path, "latest"
    return Reference(host=host, repository=repository, tag=digest or tag)


@dataclass(frozen=True, kw_only=True)
class Web:
    """A pool of connections that gives up soon: a preflight has seconds."""

    hub: str = HUB
    pool: urllib3.PoolManager = field(
        default_factory=lambda: urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=3, read=6), retries=urllib3.Retry(total=1, redirect=3), maxsize=8
        )
    )

    def manifest(self, reference: Reference) -> tuple[int, str | None]:
        """The registry's answer, and the digest of what the reference names."""
        url = f"{reference.base}/v2/{reference.repository}/manifests/{reference.tag}"
        answer = self._ask("HEAD", url, {"Accept": MANIFESTS})
        if answer.status == 401:
            token = self._token(answer.headers.get("WWW-Authenticate", ""))
            if token is not None:
                answer = self._ask("HEAD", url, {"Accept": MANIFESTS, "Authorization": f"Bearer {token}"})
        return answer.status, answer.headers.get("Docker-Content-Digest")

    def chart_versions(self, repository: str, chart: str) -> tuple[int, list[str]]:
        """Versions of a chart in the index of a Helm repository."""
        answer = self._ask("GET", f"{repository}/index.yaml", {})
        return answer.status, versions_in(answer.data.decode(errors="replace"), chart)

    def may_read_model(self, model: str, token: str | None) -> int:
        """The hub's answer whether this token may read the model's files."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return self._ask("GET", f"{self.hub}/api/models/{model}/auth-check", headers).status

    def _token(self, challenge: str) -> str | None:
        """What the registry sends for its asking, to whoever it is."""
        asked = dict(_CHALLENGE.findall(challenge))
        realm = asked.pop("realm", "")
        if not realm.startswith("http"):
            return None
        answer = self._ask("GET", f"{realm}?{urlencode(asked)}", {})
        if answer.status != 200:
            return None
        body: dict[str, Any] = json.loads(answer.data)
        token = body.get("token") or body.get("access_token")
        return token if isinstance(token, str) else None

    def _ask(self, method: str, url: str, headers: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        return self.pool.request(method, url, headers=dict(headers))


def versions_in(index: str, chart: str) -> list[str]:
    """Read as text: a whole index takes a YAML parser longer than a preflight has."""
    section = re.search(rf"^  {re.escape(chart)}:\n((?:  - .*\n|    .*\n|\n)*)", index, re.MULTILINE)
    return [] if section is None else re.findall(r'^  [ -] version: ["\']?([^"\'\s]+)', section[1], re.MULTILINE)
