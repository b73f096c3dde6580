"""What the log says that an operation was done to."""

from typing import Any, cast

import pytest

from tests.e2e.cloud.subjects import asked_subject, is_read, made_subject
from tests.e2e.cloud.wire import Call

NAMED = [{"Key": "Name", "Value": "lab-nat"}]


def call(action: str, **params: Any) -> Call:
    nothing = cast("Any", None)
    return Call(service="ec2", action=action, params=params, operation=nothing, request=nothing)


@pytest.mark.parametrize(
    ("asked", "subject"),
    [
        (call("DeleteVpc", VpcId="vpc-1"), "vpc-1"),
        (call("CreateVpc", CidrBlock="10.0.0.0/16"), "10.0.0.0/16"),
        (call("CreateNatGateway", SubnetId="subnet-1", TagSpecifications=[{"Tags": NAMED}]), "lab-nat"),
        (call("CreateFileSystem", Tags=NAMED), "lab-nat"),
        (call("CreateNodegroup", clusterName="lab", nodegroupName="system", tags={"Name": "x"}), "lab/system"),
        (call("CreateAccessEntry", clusterName="lab", principalArn="arn:role/node"), "lab/arn:role/node"),
        (call("AttachRolePolicy", RoleName="node", PolicyArn="arn:p"), "node/arn:p"),
        (call("CreateRole", RoleName="node", AssumeRolePolicyDocument="a document"), "node"),
        (call("PutParameter", Name="token", Value="a secret"), "token"),
        (call("CreateTags", Resources=["vpc-1", "eni-1"], Tags=[{"Key": "a", "Value": "1"}]), "vpc-1,eni-1"),
        (call("PutObject", Bucket="records", Key="run/a.json"), "records/run/a.json"),
        (call("AllocateAddress"), ""),
    ],
)
def test_a_call_names_its_subject(asked, subject):
    assert asked_subject(asked) == subject


def test_a_creation_is_known_by_its_new_id():
    assert made_subject(call("CreateVpc"), {"Vpc": {"VpcId": "vpc-1"}}) == "vpc-1"
    assert (
        made_subject(call("RunInstances"), {"Instances": [{"InstanceId": "i-1"}, {"InstanceId": "i-2"}]}) == "i-1,i-2"
    )
    assert made_subject(call("DeleteVpc"), {}) is None


@pytest.mark.parametrize(
    ("action", "reads"),
    [("DescribeVpcs", True), ("ListRoles", True), ("HeadBucket", True), ("ReceiveMessage", True),
     ("CreateVpc", False), ("PutObject", False), ("DetachRolePolicy", False), ("DeleteMessage", False)],
)  # fmt: skip
def test_reading_is_told_from_changing(action, reads):
    assert is_read(action) is reads
