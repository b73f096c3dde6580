"""Go that isn't there, is too old, or says no; and modules that can't be had."""

import json
import sys

import pytest

from tests.e2e.tools import __main__ as command
from tests.e2e.tools import build as building
from tests.e2e.tools.go import Go, ToolsError, find_go
from tests.e2e.tools.groups import KARPENTER
from tests.e2e.tools.modules import download, pinned
from tests.e2e.tools.test_build import script


@pytest.fixture
def path(tmp_path, monkeypatch):
    """An empty PATH; returns its one folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def answering(version: str) -> str:
    return f"""printf '%s' '{json.dumps({"GOVERSION": version, "GOOS": "linux", "GOARCH": "amd64"})}'"""


@pytest.mark.usefixtures("path")
def test_without_go_one_sentence_says_which_and_how():
    with pytest.raises(ToolsError, match=r"^Go isn't on PATH; Go 1\.\d+\.\d+ or newer builds .* https://go.dev/dl"):
        find_go()


def test_an_older_go_is_named_with_the_one_that_is_needed(path):
    script(path / "go", answering("go1.19.8"))
    with pytest.raises(ToolsError, match=r"bin/go is go1\.19\.8; Go 1\.26\.\d+ or newer"):
        find_go()


def test_gos_own_refusal_is_told(path):
    script(path / "go", "echo 'go: go.mod requires go >= 1.26.6 (running go 1.22.1; GOTOOLCHAIN=local)'; exit 1")
    with pytest.raises(ToolsError, match=r"running go 1\.22\.1; GOTOOLCHAIN=local\)\); Go 1"):
        find_go()


def test_a_newer_go_serves(path):
    script(path / "go", answering("go1.30"))
    assert find_go() == Go(path=path / "go", version="go1.30 linux/amd64")


@pytest.mark.usefixtures("path")
def test_the_command_ends_with_that_sentence_and_no_traceback(capsys, monkeypatch):
    building.tool_folder.cache_clear()
    monkeypatch.setattr(sys, "argv", ["tools"])
    assert command.main() == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("tools: Go isn't on PATH")


def test_a_module_is_asked_for_at_its_pinned_version(tmp_path):
    go = Go(path=script(tmp_path / "go", """echo '{"Dir": "'$4'"}'"""), version="")
    assert str(download(go, KARPENTER.module)) == f"{KARPENTER.module}@{KARPENTER.version}"


def test_a_module_that_cannot_be_had_is_named_with_gos_reason(tmp_path):
    refusing = script(tmp_path / "go", """echo '{"Error": "dial tcp: no route"}'; exit 1""")
    with pytest.raises(ToolsError, match=rf"{KARPENTER.module} {KARPENTER.version} can't be had: dial tcp: no route"):
        download(Go(path=refusing, version=""), KARPENTER.module)


def test_words_that_are_no_json_are_told_too(tmp_path):
    breaking = script(tmp_path / "go", "echo 'go: cannot find GOROOT'; exit 2")
    with pytest.raises(ToolsError, match="can't be had: go: cannot find GOROOT"):
        download(Go(path=breaking, version=""), KARPENTER.module)


def test_a_module_without_a_pin_is_refused_with_the_place_for_it():
    with pytest.raises(ToolsError, match=r"example\.com/none has no one version .*\(none\); pin it in files/go.mod"):
        pinned("example.com/none")


def test_a_module_of_two_versions_is_refused():
    # Kubernetes and Trainer stand on different patch releases of it.
    with pytest.raises(ToolsError, match=r"controllers: v[\d.]+"):
        pinned("google.golang.org/grpc")
