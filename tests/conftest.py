"""What holds for all tests: which environment can run which, and no skip that CI doesn't expect."""

import importlib.util
import os
import re
from pathlib import Path

import pytest
from hypothesis import settings

from tests.skips import is_expected

# A law is no benchmark: on a busy machine one example may take longer than hypothesis's 200 ms.
settings.register_profile("house", deadline=None)
settings.load_profile("house")

NEEDS = {
    "torch": re.compile(r"^pytestmark\s*=.*\bmark\.torch\b", re.MULTILINE),
    "pulumi": re.compile(r"^(import|from) (pulumi|infra|tests\.pulumi_engine|tests\.e2e)\b", re.MULTILINE),
    "moto": re.compile(r"^(import|from) (moto|tests\.workloads\.operations\.leftovers)\b", re.MULTILINE),
}
"""Modules that only one of the two environments can import, by a line of theirs."""

KITS = (("pulumi", "moto"), ("torch",))
"""What the two environments have; one that has neither whole would leave tests to another that nobody makes."""

_unexpected: list[str] = []


def pytest_sessionstart() -> None:
    """Refuse to run where a package is missing from both kits: its tests would be left out without a word."""
    lacking = [[name for name in kit if importlib.util.find_spec(name) is None] for kit in KITS]
    if all(lacking):
        raise pytest.UsageError(
            f"this environment lacks {lacking[0][0]}, and torch too: it is neither .venv nor .venv-lab, and half of "
            "the tests would be left out; make one (`make set-up`, then `make test`)"
        )


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out modules, and folders by their conftest, that this environment can't import; the other one can."""
    module = collection_path / "conftest.py" if collection_path.is_dir() else collection_path
    return True if module.suffix == ".py" and module.is_file() and _is_foreign(module) else None


def _is_foreign(path: Path) -> bool:
    text = path.read_text()
    return any(mark.search(text) and importlib.util.find_spec(name) is None for name, mark in NEEDS.items())


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if not hasattr(report, "wasxfail"):
        _note_skip(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _note_skip(report)


def _note_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped:
        reason = str(report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr)
        if not is_expected(report.nodeid, reason):
            _unexpected.append(f"{report.nodeid}: {reason}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    left_out = sorted(path.name for path in Path(__file__).parent.rglob("test_*.py") if _is_foreign(path))
    if left_out:
        terminalreporter.write_line(f"left to the other environment (see Makefile): {', '.join(left_out)}")
    for line in _unexpected:
        terminalreporter.write_line(f"UNEXPECTED SKIP {line}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _unexpected and os.environ.get("CI") == "true":
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
