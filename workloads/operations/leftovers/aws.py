"""One account in one region: clients that retry, pages that end, and errors that are sentences."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import boto3
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

_CONFIG = Config(
    # Throttling too: 8 attempts wait up to a minute, with jitter.
    retries={"mode": "standard", "total_max_attempts": 8},
    connect_timeout=10,
    read_timeout=30,
)
AT_ONCE_S = 3
"""To connect, twice: somebody waits before an empty screen, and a network that is away is told within seven seconds."""
AT_ONCE = Config(
    retries={"mode": "standard", "total_max_attempts": 2},
    connect_timeout=AT_ONCE_S,
    read_timeout=10,
)
DENIED = frozenset({
    "AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError", "NotAuthorized",
    "UnauthorizedException", "403",
})  # fmt: skip
"""AWS's words for credentials that lack a right; anything else is another trouble."""
_HOMES = {"pricing": "us-east-1"}
"""Services that answer for all regions from one."""


class RefusedError(ValueError):
    """AWS didn't do what it was asked; the message says what, why and what to do."""


class Aws:
    """Clients of one region, made on first use. `profile`: of the AWS configuration, or the ambient credentials.

    `config`: how patient the clients are; by default as a destroy wants them.
    """

    def __init__(self, *, region: str, profile: str | None, config: Config = _CONFIG) -> None:
        self.region, self.profile, self._config = region, profile, config
        with sentences("credentials"):
            session = boto3.Session(region_name=region, profile_name=profile)
        self.client = cache(lambda service: self._client(session, service))

    def account(self) -> str:
        """The account that the credentials belong to."""
        with sentences("whose credentials these are"):
            return str(self.client("sts").get_caller_identity()["Account"])

    def must_be(self, account: str) -> None:
        """RefusedError where the credentials are of another account."""
        found = self.account()
        if found != account:
            raise RefusedError(
                f"these credentials are of account {found}, and the stack stands in {account}: nothing was touched; "
                "use that account's credentials"
            )

    def pages(
        self, service: str, operation: str, items: str, arguments: Mapping[str, Any] | None = None
    ) -> Iterator[Any]:
        """Each item of all pages; `items` is where a page has them (`Reservations.Instances`).

        A paged answer is never taken for the whole.
        """
        client, asked = self.client(service), dict(arguments or {})
        paged = client.can_paginate(operation)
        pages = client.get_paginator(operation).paginate(**asked) if paged else [getattr(client, operation)(**asked)]
        for page in pages:
            yield from _inside(page, items.split("."))

    def options(self) -> str:
        """What a command of the AWS CLI needs to speak of the same place."""
        return f"--region {self.region}" + (f" --profile {self.profile}" if self.profile else "")

    # Each service's client has a type of its own; here they are told apart by operation names alone.
    def _client(self, session: boto3.Session, service: str) -> Any:
        make: Any = session.client
        client: BaseClient = make(service, region_name=_HOMES.get(service, self.region), config=self._config)
        return client


@contextlib.contextmanager
def sentences(what: str) -> Iterator[None]:
    """AWS's errors as RefusedError; `what` says what couldn't be learnt or done."""
    try:
        yield
    except ClientError as error:
        code, operation = code_of(error), error.operation_name
        if code in DENIED:
            raise RefusedError(f"{what}: these credentials may not call {operation} ({code}); allow it") from error
        message = _one_line(error.response.get("Error", {}).get("Message", ""))
        raise RefusedError(f"{what}: AWS answers {operation} with {code} ({message}); mend that, call again") from error
    except BotoCoreError as error:
        raise RefusedError(f"{what}: AWS can't be asked ({_one_line(error)}); mend that, call again") from error


@contextlib.contextmanager
def unless(*codes: str) -> Iterator[None]:
    """Errors with these codes are fine: what was to go is gone, or isn't free yet."""
    try:
        yield
    except ClientError as error:
        if code_of(error) not in codes:
            raise


def code_of(error: ClientError) -> str:
    """AWS's word for what went wrong."""
    return str(error.response.get("Error", {}).get("Code", "unknown"))


def tags_of(thing: Mapping[str, Any]) -> dict[str, str]:
    """Tags as a mapping; services spell the list's key and its entries' keys differently."""
    listed = thing.get("Tags") or thing.get("TagSet") or thing.get("tags") or []
    if isinstance(listed, Mapping):
        return dict(listed)
    return {entry["Key"]: entry["Value"] for entry in listed}


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


def _inside(page: Any, path: Sequence[str]) -> Iterator[Any]:
    if not path:
        yield page
        return
    for item in page.get(path[0], []):
        yield from _inside(item, path[1:])
