"""One fake account, begun anew for each test."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.e2e.children import Children
from tests.e2e.cloud.ground import Ground, make_ground
from tests.e2e.cloud.start import reset_cloud, start_cloud
from tests.e2e.operations import read
from tests.e2e.site import REGION

Clients = Callable[..., Any]


@pytest.fixture(scope="session")
def cloud_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cloud")


@pytest.fixture(scope="session")
def running_cloud(cloud_folder: Path) -> Iterator[str]:
    with Children(cloud_folder / "logs") as children:
        yield start_cloud(cloud_folder, children)


@pytest.fixture
def cloud(running_cloud: str, cloud_folder: Path) -> str:
    """Its URL; the account is empty, and so are log and faults."""
    reset_cloud(running_cloud)
    for name in ("operations.jsonl", "faults.json", "site.json"):
        (cloud_folder / name).unlink(missing_ok=True)
    return running_cloud


@cache
def _client(url: str, service: str, region: str) -> Any:
    make: Any = boto3.client
    return make(
        service,
        endpoint_url=url,
        region_name=region,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        config=Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=60),
    )


@pytest.fixture
def client(cloud: str) -> Clients:
    """A boto3 client by service, which never tries twice."""
    return lambda service, region=REGION: _client(cloud, service, region)


@pytest.fixture
def refused() -> Callable[..., str]:
    """The code with which a call is refused."""

    def code_of(call: Callable[..., object], **arguments: object) -> str:
        with pytest.raises(ClientError) as caught:
            call(**arguments)
        return str(caught.value.response["Error"]["Code"])

    return code_of


@pytest.fixture
def log(cloud_folder: Path) -> Callable[[], list[tuple[str, str, str]]]:
    """Verb, subject and outcome of all operations so far."""

    def read_log() -> list[tuple[str, str, str]]:
        return [(one.verb, one.subject, one.outcome) for one in read(cloud_folder / "operations.jsonl")]

    return read_log


@pytest.fixture
def ground(client) -> Ground:
    """A VPC with two subnets and roles, for a cluster."""
    return make_ground(client)
