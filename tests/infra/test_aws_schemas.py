"""Every AWS resource of every stack against CloudFormation's schemas, and every policy against IAM's own table."""

import copy
import json
from functools import cache
from importlib.resources import files
from typing import Any

import pytest
from cfnlint.api import ManualArgs, lint

from tests.infra.aws_calls import REGION, made_in_aws
from tests.infra.cloud_formation import TYPES, WITHOUT, template
from tests.pulumi_engine import VARIANTS, registered, stack_names

STACKS = [*stack_names(), *(name for name in VARIANTS if name != "local")]

OF_EACH_SHAPE = [
    "dev", "g6e12xl-4x4-efa1-pg", "scratch", "kept", "own-bucket", "guarded",
    "An_odd.Name-of_many.letters-that-no.AWS_name.can-hold-whole",
]  # fmt: skip

STYLE = {
    # Of how a template is written, not of what AWS takes.
    "W3010": "zones are written out: the stack file names one",
    "I3011": "a template would say what is kept; Pulumi says it by retain_on_delete",
    "W3687": "Pulumi wants ports beside protocol -1, AWS ignores them",
}

NO_OTHER_WAY = {
    # Actions that know resources, but are asked for all of them.
    "sqs:*": "only in a Deny: nothing may be sent over plain HTTP",
    "s3:*": "only in a Deny: nothing may be sent over plain HTTP",
}


@cache
def templates() -> dict[str, dict[str, Any]]:
    return {stack: template(made_in_aws(registered(stack))) for stack in OF_EACH_SHAPE}


def resources() -> list[dict[str, Any]]:
    return [one for found in templates().values() for one in found["Resources"].values()]


def said(one: dict[str, Any]) -> list[str]:
    found = lint(json.dumps(one), config=ManualArgs(regions=[REGION], include_checks=["E", "W", "I"]))
    return [f"{m.rule.id} {'.'.join(map(str, m.path))}: {m.message}" for m in found if m.rule.id not in STYLE]


@pytest.mark.parametrize("stack", OF_EACH_SHAPE)
def test_every_resource_fits_its_schema(stack):
    assert said(templates()[stack]) == []


@pytest.mark.parametrize("stack", STACKS)
def test_every_stack_has_the_shape_of_one_whose_resources_fit(stack):
    # Names, zones and sizes apart: those the service models hold (test_aws_calls).
    assert shape(template(made_in_aws(registered(stack)))) in [shape(one) for one in templates().values()]


def shape(one: dict[str, Any]) -> list[str]:
    return sorted(f"{found['Type']} {sorted(found['Properties'])}" for found in one["Resources"].values())


def test_every_type_of_the_program_is_translated_or_part_of_one_that_is():
    types = {made.type for stack in STACKS for made in made_in_aws(registered(stack))}
    assert {one for one in types if one not in TYPES and one.rpartition(":")[2] not in WITHOUT} == set()


def first(kind: str) -> dict[str, Any]:
    return copy.deepcopy(next(one for one in resources() if one["Type"] == kind))


WRONG = [
    ("AWS::FSx::FileSystem", lambda p: p["LustreConfiguration"].update(Deployment="SCRATCH_2"), "'Deployment' was"),
    ("AWS::EC2::Subnet", lambda p: p.update(CidrBlock="10.0.0.0/99"), "10.0.0.0/99"),
    ("AWS::EKS::Nodegroup", lambda p: p.update(AmiType="AL2023"), "'AL2023' is not"),
    ("AWS::SQS::Queue", lambda p: p.update(MessageRetentionPeriod=30), "30 is less than"),
    ("AWS::IAM::Role", lambda p: p.update(RoleName="a b"), "a b"),
    (
        "AWS::IAM::ManagedPolicy",
        lambda p: p["PolicyDocument"]["Statement"][0].update(Action=["ec2:RunInstance"]),
        "'runinstance' is not one of",
    ),
]


@cache
def said_of_the_wrong() -> list[str]:
    """All of them in one template: a start of cfn-lint takes longer than its look."""
    spoiled = {f"Wrong{number}": first(kind) for number, (kind, _, _) in enumerate(WRONG)}
    for one, (_, spoil, _) in zip(spoiled.values(), WRONG, strict=True):
        spoil(one["Properties"])
    return said({"AWSTemplateFormatVersion": "2010-09-09", "Resources": spoiled})


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_value_outside_its_schema_is_named(number):
    of_it = [line for line in said_of_the_wrong() if f".Wrong{number}." in line]
    assert any(WRONG[number][2] in line for line in of_it), of_it


@cache
def actions() -> dict[str, Any]:
    """cfn-lint's copy of the service authorization reference: by service, in lower case."""
    table: dict[str, Any] = json.loads((files("cfnlint.data.AdditionalSpecs") / "Policies.json").read_text())
    return table


def statements() -> list[dict[str, Any]]:
    """Of identity and resource policies; in those of trust the resource is the role itself."""
    documents = [one["Properties"].get("PolicyDocument") for one in resources()]
    return [statement for document in documents if document for statement in document["Statement"]]


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def open_ended(statement: dict[str, Any]) -> list[str]:
    """Actions on `*` that could be held to a resource, by IAM's own table."""
    if "*" not in listed(statement["Resource"]):
        return []
    service_action = [(action, *action.lower().split(":")) for action in listed(statement["Action"])]
    return [
        one for one, service, name in service_action if actions()[service]["Actions"].get(name, {}).get("Resources")
    ]


def test_a_star_stands_only_where_aws_has_no_other_way():
    assert len(statements()) >= 15
    assert [one for statement in statements() for one in open_ended(statement)] == []


def test_an_action_that_could_be_held_to_a_resource_is_found():
    wide = {"Effect": "Allow", "Action": ["ec2:TerminateInstances", "ec2:DescribeInstances"], "Resource": "*"}
    assert open_ended(wide) == ["ec2:TerminateInstances"]


def test_no_action_is_a_pattern_but_in_a_denial_of_plain_http():
    patterns = [(one["Effect"], action) for one in statements() for action in listed(one["Action"]) if "*" in action]
    assert {action for _, action in patterns} == set(NO_OTHER_WAY)
    assert {effect for effect, _ in patterns} == {"Deny"}


def test_a_right_to_launch_end_or_tag_is_held_to_this_cluster_by_condition():
    touching = ("ec2:TerminateInstances", "ec2:DeleteLaunchTemplate", "ec2:CreateTags", "iam:DeleteInstanceProfile")
    for statement in statements():
        if set(touching) & set(listed(statement["Action"])):
            keys = [key for tests in statement["Condition"].values() for key in tests]
            assert any("kubernetes.io/cluster/topolab-" in key for key in keys), statement["Sid"]
