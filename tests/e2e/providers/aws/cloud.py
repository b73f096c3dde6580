"""The fake cloud as the stand-in sees it: botocore clients made once, refusals as sentences, bounded waits."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ProfileNotFound

from tests.e2e.providers.serving import RefusedError, Resource
from tests.e2e.site import Site

_ATTEMPTS = 6
"""Of a throttled call, in the SDK's standard mode. The real provider makes 25, which takes minutes to fail."""
_LOOK_EVERY_S = 0.1


@dataclass(frozen=True, kw_only=True)
class Waits:
    """How long the stand-in waits where the program states no timeout: shorter than the real provider's.

    `ready_s`: until what was made is available (there: 10 to 60 minutes). `gone_s`: until what was deleted is
    away (there: 10 to 60 minutes). `freed_s`: until nothing depends on what is deleted (there: 5 to 20 minutes).
    """

    ready_s: float = 180.0
    gone_s: float = 120.0
    freed_s: float = 15.0

    def save(self, site: Site) -> None:
        """For the providers that start from now on in this site."""
        _file(site).write_text(json.dumps(asdict(self)))

    @classmethod
    def of(cls, site: Site) -> Self:
        """Those of the site, or the defaults."""
        return cls(**json.loads(_file(site).read_text())) if _file(site).exists() else cls()


class PendingError(Exception):
    """A wait ended before what was waited for: too long, or Ctrl-C."""


class Cloud:
    """One account and region. Thread-safe."""

    def __init__(self, site: Site, *, region: str | None, profile: str | None) -> None:
        """`region`: else that of the shell or the profile. RefusedError where there is none, or no such profile."""
        self.waits, self.stopping = Waits.of(site), threading.Event()
        self._endpoint, self._clients, self._lock = site.aws_endpoint, dict[str, Any](), threading.Lock()
        self._session = botocore.session.Session(profile=profile)
        try:
            self._session.get_scoped_config()
            found = region or self._session.get_config_variable("region")
        except ProfileNotFound:
            raise RefusedError(f"aws:profile = {profile!r}: failed to get shared config profile") from None
        if not found:
            raise RefusedError("aws:region isn't set: missing region configuration")
        self.region = str(found)

    def __getattr__(self, service: str) -> Any:
        """A botocore client by the service's name."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._session.create_client(
                    service,
                    region_name=self.region,
                    endpoint_url=self._endpoint,
                    config=Config(
                        retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
                        max_pool_connections=32,
                    ),
                )
            return self._clients[service]

    def arn(self, service: str, rest: str, *, regional: bool = True) -> str:
        """An ARN of this account."""
        return f"arn:aws:{service}:{self.region if regional else ''}:{self.account}:{rest}"

    @property
    def account(self) -> str:
        """The account that the credentials belong to."""
        return str(self.caller["Account"])

    @property
    def caller(self) -> Mapping[str, Any]:
        """What STS says of the credentials; asked once."""
        if "caller" not in self._clients:
            self._clients["caller"] = self.sts.get_caller_identity()
        return self._clients["caller"]  # type: ignore[no-any-return]  # the cache holds clients, and this

    def until(self, done: Callable[[], bool], within_s: float, what: str) -> None:
        """Look until `done`; PendingError names `what` after the time, or at Ctrl-C."""
        limit = time.monotonic() + within_s
        while not done():
            if time.monotonic() > limit:
                raise PendingError(f"timeout after {within_s:g} s while waiting for {what}")
            if self.stopping.wait(_LOOK_EVERY_S):
                raise PendingError(f"canceled while waiting for {what}")

    def once_free(self, call: Callable[[], Any], codes: str, within_s: float) -> None:
        """Make a call, again and again while AWS says that something still depends on its object.

        `codes`: a regular expression over "code: message". The last refusal comes out.
        """
        limit = time.monotonic() + within_s
        while True:
            try:
                call()
            except ClientError as error:
                waiting = re.search(codes, f"{code_of(error)}: {message_of(error)}")
                if not waiting or time.monotonic() > limit or self.stopping.wait(_LOOK_EVERY_S * 5):
                    raise
            else:
                return


def code_of(error: ClientError) -> str:
    """AWS's code, such as `DependencyViolation`."""
    return str(error.response.get("Error", {}).get("Code", "Unknown"))


def message_of(error: ClientError) -> str:
    """AWS's own words."""
    return str(error.response.get("Error", {}).get("Message", ""))


def sentence(verb: str, resource: Resource, error: Exception) -> str:
    """As the real provider words it: what was done to what, the operation, code and message."""
    kind = resource.type.rpartition(":")[2]
    what = f"{verb} {kind} ({resource.name})"
    if isinstance(error, ClientError):
        return f"{what}: operation error {error.operation_name}, api error {code_of(error)}: {message_of(error)}"
    return f"{what}: {error}"


@contextmanager
def refusing(verb: str, resource: Resource) -> Iterator[None]:
    """Whatever AWS refuses, or a wait that ended, inside becomes a RefusedError."""
    try:
        yield
    except (ClientError, BotoCoreError, PendingError) as error:
        raise RefusedError(sentence(verb, resource, error)) from error


@contextmanager
def gone_is_fine(*codes: str) -> Iterator[None]:
    """Nothing is said where the object isn't there any more: codes end with one of these."""
    try:
        yield
    except ClientError as error:
        if not code_of(error).endswith(codes):
            raise


def _file(site: Site) -> Path:
    return site.folder / "aws-waits.json"
