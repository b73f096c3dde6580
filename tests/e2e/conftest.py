"""What the scenarios share: one standing site, one installation of Pulumi, a fresh checkout for each story."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.engine.installation import Installation, install
from tests.e2e.engine.sample import write_sample
from tests.e2e.engine.workspace import Workspace
from tests.e2e.figures import Figures
from tests.e2e.standing import Standing, open_site
from tests.e2e.tools import module_path, tool_folder

SDK = "github.com/pulumi/pulumi/sdk/v3"
FIGURES = Figures()

FAST_SET = {"test_main_line", "test_training", "test_pods_as_rendered", "test_admission"}
"""From preview to trained pods to an empty account: the figure that is to stay under six minutes."""
LONGEST = (
    "test_soak",
    "test_interruption",
    "test_main_line",
    "test_disturbances",
    "test_teardown",
    "test_training",
    "test_karpenter",
    "test_secrets",
)


@pytest.fixture(scope="session")
def tools() -> Path:
    """The folder of binaries; what is missing is built, which may take minutes."""
    with FIGURES.measured("build"):
        return tool_folder()


@pytest.fixture(scope="session")
def standing(tools, tmp_path_factory) -> Iterator[Standing]:
    """One site for all tests of the session."""
    began = time.monotonic()
    with open_site(tmp_path_factory.mktemp("standing"), tools) as site:
        FIGURES.note("start", time.monotonic() - began)
        yield site


@pytest.fixture(scope="session")
def installation(tools, tmp_path_factory) -> Installation:
    """The engine with its providers."""
    return install(tmp_path_factory.mktemp("installation"), tools / "pulumi", module_path(SDK))


@pytest.fixture(scope="session")
def bare_installation(tools, tmp_path_factory) -> Installation:
    """The engine, the Python host and dynamic providers."""
    return install(tmp_path_factory.mktemp("bare"), tools / "pulumi", module_path(SDK), providers={})


@contextmanager
def user_of(standing: Standing, installation: Installation, folder: Path) -> Iterator[Workspace]:
    """A fresh checkout and backend, before an empty account and cluster; the test's own SDKs find the account too."""
    standing.begin()
    workspace = Workspace(installation, folder, site=standing.site)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in standing.site.environment().items():
            patch.setenv(name, value)
        try:
            yield workspace
        finally:
            workspace.reap()
            FIGURES.note_commands(workspace.outcomes)


@pytest.fixture
def workspace(standing, installation, tmp_path) -> Iterator[Workspace]:
    with user_of(standing, installation, tmp_path / "workspace") as user:
        yield user


@pytest.fixture(scope="module")
def module_workspace(standing, installation, tmp_path_factory) -> Iterator[Workspace]:
    """The same, for a story that all tests of a module read."""
    with user_of(standing, installation, tmp_path_factory.mktemp("workspace")) as user:
        yield user


@pytest.fixture(scope="session")
def say() -> Callable[[str], None]:
    """Says a line in the summary of the session, whatever becomes of the test."""
    return FIGURES.remark


@pytest.fixture
def sample(bare_installation, tmp_path) -> Iterator[Workspace]:
    """A fresh checkout of the sample program with a stack `dev`; nothing of it runs on after the test."""
    workspace = Workspace(bare_installation, tmp_path / "workspace", project=write_sample(tmp_path / "project"))
    workspace.init("dev")
    workspace.set("dev", "log", str(tmp_path / "leaves.log"))
    yield workspace
    workspace.reap()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, so that two processes that share the files end at about the same time."""
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.passed and "test_two_pods_train_and_publish" in report.nodeid and report.when in {"setup", "call"}:
        FIGURES.note("train", report.duration)
    if Path(report.nodeid.split("::")[0]).stem in FAST_SET:
        FIGURES.note("fast set", report.duration)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist hands over what it measured."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["figures"] = FIGURES.dump()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    FIGURES.merge(getattr(node, "workeroutput", {}).get("figures", Figures().dump()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in FIGURES.lines():
        terminalreporter.write_line(line)
