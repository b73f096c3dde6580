"""Programs of this computer."""

import json

import pytest

from tests.workloads.operations.preflight.asking import ARN, asked, only
from workloads.operations.preflight.judgements import tools as judge
from workloads.operations.preflight.questions import tools


def program(folder, name, script):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def test_programs_that_are_new_enough_are_green(path):
    program(path, "aws", 'echo "aws-cli/2.31.0 Python/3.13 Linux"')
    program(path, "pulumi", "echo v3.260.0")
    program(path, "kubectl", 'echo "Client Version: v1.35.1"')
    rows = list(tools.programs(asked()))
    assert [(row.check, row.colour) for row in rows] == [
        ("tool aws", "green"),
        ("tool pulumi", "green"),
        ("tool kubectl", "green"),
    ]


def test_programs_that_are_absent_old_or_strange_are_red_with_where_to_get_them(path):
    program(path, "aws", 'echo "aws-cli/1.20.1 Python/3.8" >&2')
    program(path, "pulumi", "echo hello")
    rows = list(tools.programs(asked()))
    assert [(row.colour, row.sentence) for row in rows] == [
        ("red", "aws is 1.20.1, 1.24.0 or newer is needed"),
        ("red", "pulumi doesn't say its version ('hello\\n')"),
        ("red", "kubectl isn't on PATH"),
    ]
    assert all(row.remedy for row in rows)


def test_the_first_line_of_the_aws_command_line_is_held_to_its_own_version():
    assert judge.aws_cli("aws-cli/1.29.0").colour == "green"
    assert judge.aws_cli("aws-cli/2.6.0").colour == "red"


def test_the_command_line_must_be_the_identity_that_python_is(path):
    program(path, "aws", f"echo '{json.dumps({'Arn': ARN})}'")
    assert only(list(tools.credentials(asked()))).colour == "green"
    other = asked(arn="arn:aws:iam::123456789012:user/eve")
    row = only(list(tools.credentials(other)))
    assert (row.colour, ARN in row.sentence) == ("red", True)


@pytest.mark.parametrize("script", ["exit 255", "echo nothing", "echo []"])
def test_a_command_line_without_credentials_is_red(path, script):
    program(path, "aws", script)
    assert only(list(tools.credentials(asked()))).colour == "red"


def test_without_an_identity_there_is_nothing_to_compare():
    assert only(list(tools.credentials(asked(arn=None)))).colour == "grey"


def test_two_sessions_of_one_role_are_one_identity():
    role = "arn:aws:sts::123456789012:assumed-role/admin/"
    assert judge.same_credentials(f"{role}botocore-1", f"{role}botocore-2").colour == "green"
    assert judge.same_credentials(f"{role}a", "arn:aws:sts::123456789012:assumed-role/other/a").colour == "red"
