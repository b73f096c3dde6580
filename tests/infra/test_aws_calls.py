"""Every AWS resource of every stack against AWS's own service models: required members, enums, patterns, lengths."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.model import ListShape, MapShape, Shape, StructureShape
from botocore.validate import ParamValidator

from tests.infra.aws_calls import CLUSTER, Asked, calls, made_in_aws, model_of
from tests.pulumi_engine import VARIANTS, registered, stack_names

STACKS = [*stack_names(), *(name for name in VARIANTS if name != "local")]

_JAVA_ONLY = re.compile(r"\\p\{|\\u\{")
"""Patterns that Python's `re` doesn't read."""


@pytest.mark.parametrize("stack", STACKS)
def test_each_resource_is_a_call_that_the_services_model_takes(stack):
    asked = [call for made in made_in_aws(registered(stack)) for call in calls(made)]
    assert len(asked) >= 50
    assert [fault for call in asked for fault in faults(call)] == []


def test_the_cluster_of_the_component_is_asked_for_too():
    (cluster,) = [made for made in made_in_aws(registered("dev")) if made.type == CLUSTER]
    (call,) = calls(cluster)
    assert (call.service, call.operation) == ("eks", "CreateCluster")
    assert call.params["version"]


WRONG = [
    ("iam", "CreateRole", {"RoleName": "a b", "AssumeRolePolicyDocument": "{}"}, "RoleName = 'a b' isn't"),
    ("iam", "CreateRole", {"RoleName": "a" * 65, "AssumeRolePolicyDocument": "{}"}, "at most 64"),
    ("iam", "CreateRole", {"RoleName": "a"}, "AssumeRolePolicyDocument"),
    ("ec2", "CreatePlacementGroup", {"GroupName": "g", "Strategy": "clustered"}, "Strategy = 'clustered' is none of"),
    ("eks", "CreateAddon", {"clusterName": "c", "addonName": "coredns", "resolveConflicts": "REPLACE"}, "none of"),
    ("ec2", "CreateVpc", {"CidrBlok": "10.0.0.0/16"}, "CidrBlok"),
    ("sqs", "CreateQueue", {"QueueName": 7}, "QueueName"),
]


@pytest.mark.parametrize(("service", "operation", "params", "expected"), WRONG)
def test_a_value_that_aws_refuses_is_named(service, operation, params, expected):
    found = " ".join(faults(Asked(urn="x", service=service, operation=operation, params=params)))
    assert expected in found


def faults(call: Asked) -> list[str]:
    """What the model says against the call: types and required members as botocore, and what it leaves out."""
    shape = model_of(call.service).operation_model(call.operation).input_shape
    assert shape is not None, f"{call.operation} takes nothing"
    where = f"{call.urn}: {call.operation}"
    report = ParamValidator().validate(call.params, shape)
    if report.has_errors():
        return [f"{where}: {report.generate_report()}"]
    return [f"{where}: {fault}" for fault in _misfits(shape, call.params, "")]


def _misfits(shape: Shape, value: Any, path: str) -> Iterator[str]:
    if isinstance(shape, StructureShape):
        for name, item in value.items():
            yield from _misfits(shape.members[name], item, f"{path}.{name}".lstrip("."))
    elif isinstance(shape, ListShape):
        for item in value:
            yield from _misfits(shape.member, item, path)
    elif isinstance(shape, MapShape):
        for key, item in value.items():
            yield from _misfits(shape.key, key, f"{path}.{key}")
            yield from _misfits(shape.value, item, f"{path}.{key}")
    elif shape.type_name == "string":
        yield from _of_text(shape, value, path)
    yield from _of_size(shape, value, path)


def _of_text(shape: Shape, value: str, path: str) -> Iterator[str]:
    known, pattern = shape.metadata.get("enum"), shape.metadata.get("pattern")
    if known and value not in known:
        yield f"{path} = {value!r} is none of {', '.join(known)}"
    if pattern and not _JAVA_ONLY.search(pattern) and not re.fullmatch(pattern, value, re.DOTALL):
        yield f"{path} = {value!r} isn't {pattern}"


def _of_size(shape: Shape, value: Any, path: str) -> Iterator[str]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    size = value if isinstance(value, int | float) else len(value)
    if low is not None and size < low:
        yield f"{path} = {value!r}: at least {low}"
    if high is not None and size > high:
        yield f"{path} = {value!r}: at most {high}"
