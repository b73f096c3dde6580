"""Verbs called as a shell would call them."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from workloads.cli.main import main


@dataclass(frozen=True)
class Called:
    code: int
    out: str
    err: str


Topo = Callable[..., Called]


@pytest.fixture
def topo(capsys) -> Topo:
    def call(*arguments: str) -> Called:
        code = main(arguments)
        captured = capsys.readouterr()
        return Called(code, captured.out, captured.err)

    return call
