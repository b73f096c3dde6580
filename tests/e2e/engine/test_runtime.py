"""What the stand-in host makes of Pulumi.yaml and of an environment, without an engine."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from google.protobuf.struct_pb2 import Struct

from infra.teardown import LIMIT_S
from tests.e2e.engine import packages
from tests.e2e.engine.events import kind_of, name_of, plain
from tests.e2e.engine.requirements import lacking
from tests.e2e.engine.running import patience_s
from tests.e2e.engine.runtime import runtime_of


def options(**values: str) -> Struct:
    struct = Struct()
    struct.update(values)
    return struct


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"toolchain": "poetry", "virtualenv": ".venv"}, "toolchain option 'poetry'"),
        ({"toolchain": "pip"}, "names no virtualenv"),
        ({"virtualenv": ".venv", "typechecker": "mypy"}, "runtime option typechecker"),
    ],
)
def test_an_option_that_the_host_does_not_know_is_refused(values, words):
    with pytest.raises(ValueError, match=words):
        runtime_of("project", options(**values))


def test_the_interpreter_lies_in_the_virtualenv_of_the_project(tmp_path):
    runtime = runtime_of(str(tmp_path), options(toolchain="pip", virtualenv=".venv"))
    assert runtime.python == tmp_path / ".venv" / "bin" / "python"
    with pytest.raises(ValueError, match="doesn't exist; run `make set-up`"):
        runtime.check()
    (tmp_path / ".venv").mkdir()
    with pytest.raises(ValueError, match="doesn't appear to be a virtual environment"):
        runtime.check()


def test_a_program_inherits_no_way_into_this_checkout(tmp_path):
    runtime = runtime_of(str(tmp_path), options(virtualenv=".venv"))
    given = {"PATH": "/usr/bin", "PYTHONPATH": "checkout", "PYTHONHOME": "x", "AWS_REGION": "r"}
    assert runtime.environment(given) == {
        "PATH": f"{tmp_path}/.venv/bin:/usr/bin", "VIRTUAL_ENV": f"{tmp_path}/.venv", "AWS_REGION": "r",
    }  # fmt: skip


def test_the_survey_finds_the_plugins_that_the_packages_name():
    found = json.loads(subprocess.run([sys.executable, packages.__file__], capture_output=True, check=True).stdout)
    plugins = {one["name"]: one["version"] for one in found["plugins"]}
    assert plugins == {name: version(f"pulumi-{name}") for name in ("aws", "eks", "kubernetes")}
    assert found["distributions"]["pulumi"] == version("pulumi")


def test_requirements_are_met_by_name_version_and_marker(tmp_path):
    (tmp_path / "more.txt").write_text("boto3>=1  # a reason\n")
    path = tmp_path / "requirements.txt"
    path.write_text("# all\n-r more.txt\npulumi>=3.260,<4\npulumi_aws==7.1\nwin-only==1; sys_platform == 'win32'\n")
    assert lacking(path, {"pulumi": "3.272.0", "pulumi-aws": "7.1", "boto3": "1.2"}) == []
    assert lacking(path, {"pulumi": "3.250.0", "pulumi-aws": "7.1"}) == ["boto3>=1", "pulumi<4,>=3.260"]


def test_a_project_without_requirements_lacks_nothing(tmp_path):
    assert lacking(Path(tmp_path / "requirements.txt"), {}) == []


def test_a_urn_gives_the_own_kind_and_name():
    urn = "urn:pulumi:dev::topolab::topolab:infra:Cluster$eks:index:Cluster$aws:iam/role:Role::role::x"
    assert kind_of(urn) == "aws:iam/role:Role"
    assert name_of(urn) == "role::x"


def test_colours_are_taken_out_of_messages():
    assert plain("<{%fg 1%}>error: <{%reset%}>50% <{of}>") == "error: 50% <{of}>"


def test_a_destroy_is_waited_for_until_its_guards_had_their_whole_limit_and_a_word_more():
    assert patience_s("destroy") >= LIMIT_S + 300
    assert patience_s("up") == patience_s("preview") < LIMIT_S
