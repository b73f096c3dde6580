"""The two stacks that most rules are read from, registered once a session."""

import pytest

from tests.pulumi_engine import Graph, registered


@pytest.fixture(scope="session")
def dev() -> Graph:
    return registered("dev")


@pytest.fixture(scope="session")
def local_machine() -> Graph:
    return registered("local")
