"""An empty fake account for each test, and a clock that nobody waits for."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.ec2.responses import EC2Response

from tests.workloads.operations.leftovers import scene
from workloads.operations.leftovers.patience import Patience


@dataclass
class Clock:
    """Time that passes by sleeping alone, and what was said."""

    seconds: float = 0.0
    lines: list[str] = field(default_factory=list)

    def patience(self, limit_s: float = 600) -> Patience:
        return Patience(limit_s=limit_s, say=self.lines.append, now=lambda: self.seconds, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(name, raising=False)
    # A thousand images that nobody launches, read anew for each account.
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    monkeypatch.setattr(EC2Response, "describe_placement_groups", scene.placement_groups([]), raising=False)
    monkeypatch.setattr(EC2Response, "describe_capacity_reservations", scene.capacity_reservations([]), raising=False)
    with mock_aws():
        yield


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch):
    """Make AWS refuse one operation: `refuse("ec2", "DescribeVpcs", "UnauthorizedOperation")`."""

    def refuse(service: str, operation: str, code: str, message: str = "no") -> None:
        client = scene.aws().client(service)
        call = client._make_api_call

        def refused(name: str, arguments: Any) -> Any:
            if name == operation:
                raise ClientError({"Error": {"Code": code, "Message": message}}, name)
            return call(name, arguments)

        monkeypatch.setattr(client, "_make_api_call", refused)

    return refuse
