"""IAM of the account: what holds what, names, quotas, and services' own roles."""

import json

import pytest

from tests.e2e.cloud.ground import trust
from tests.e2e.cloud.inventory import inventory

pytestmark = pytest.mark.e2e

ALLOW = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}]}
)
EC2 = trust("ec2.amazonaws.com")
WORKER = "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"


@pytest.fixture
def iam(client):
    made = client("iam")
    made.create_role(RoleName="node", AssumeRolePolicyDocument=EC2)
    return made


def test_a_role_stays_while_it_has_policies_or_is_in_a_profile(iam, cloud, refused):
    policy = iam.create_policy(PolicyName="p", PolicyDocument=ALLOW)["Policy"]["Arn"]
    iam.attach_role_policy(RoleName="node", PolicyArn=policy)
    assert refused(iam.delete_role, RoleName="node") == "DeleteConflict"
    assert refused(iam.delete_policy, PolicyArn=policy) == "DeleteConflict"
    iam.detach_role_policy(RoleName="node", PolicyArn=policy)
    iam.delete_policy(PolicyArn=policy)

    iam.put_role_policy(RoleName="node", PolicyName="inline", PolicyDocument=ALLOW)
    assert refused(iam.delete_role, RoleName="node") == "DeleteConflict"
    iam.delete_role_policy(RoleName="node", PolicyName="inline")

    iam.create_instance_profile(InstanceProfileName="gpu")
    iam.add_role_to_instance_profile(InstanceProfileName="gpu", RoleName="node")
    assert refused(iam.delete_role, RoleName="node") == "DeleteConflict"
    assert refused(iam.delete_instance_profile, InstanceProfileName="gpu") == "DeleteConflict"
    iam.remove_role_from_instance_profile(InstanceProfileName="gpu", RoleName="node")
    iam.delete_instance_profile(InstanceProfileName="gpu")
    iam.delete_role(RoleName="node")
    assert inventory(cloud) == {}


@pytest.mark.parametrize(
    ("action", "arguments", "code"),
    [
        ("create_role", {"RoleName": "node", "AssumeRolePolicyDocument": EC2}, "EntityAlreadyExists"),
        ("create_role", {"RoleName": "r" * 65, "AssumeRolePolicyDocument": EC2}, "ValidationError"),
        ("create_role", {"RoleName": "a b", "AssumeRolePolicyDocument": EC2}, "ValidationError"),
        ("create_role", {"RoleName": "r", "AssumeRolePolicyDocument": ALLOW}, "MalformedPolicyDocument"),
        ("create_role", {"RoleName": "r", "AssumeRolePolicyDocument": "{"}, "MalformedPolicyDocument"),
        ("create_policy", {"PolicyName": "p", "PolicyDocument": "{"}, "MalformedPolicyDocument"),
        ("create_policy", {"PolicyName": "p", "PolicyDocument": ALLOW + "x" * 7000}, "LimitExceeded"),
        ("create_policy", {"PolicyName": "p" * 129, "PolicyDocument": ALLOW}, "ValidationError"),
        ("create_instance_profile", {"InstanceProfileName": "p" * 129}, "ValidationError"),
        ("attach_role_policy", {"RoleName": "nobody", "PolicyArn": WORKER}, "NoSuchEntity"),
        ("attach_role_policy", {"RoleName": "node", "PolicyArn": "arn:aws:iam::aws:policy/No"}, "NoSuchEntity"),
        ("detach_role_policy", {"RoleName": "node", "PolicyArn": WORKER}, "NoSuchEntity"),
        (
            "add_role_to_instance_profile",
            {"InstanceProfileName": "nobody", "RoleName": "node"},
            "NoSuchEntity",
        ),
        ("delete_role", {"RoleName": "nobody"}, "NoSuchEntity"),
    ],
)  # fmt: skip
def test_what_iam_refuses(iam, refused, action, arguments, code):
    assert refused(getattr(iam, action), **arguments) == code


def test_names_of_policies_and_profiles_are_given_once(iam, refused):
    iam.create_policy(PolicyName="p", PolicyDocument=ALLOW)
    assert refused(iam.create_policy, PolicyName="p", PolicyDocument=ALLOW) == "EntityAlreadyExists"
    iam.create_instance_profile(InstanceProfileName="p")
    assert refused(iam.create_instance_profile, InstanceProfileName="p") == "EntityAlreadyExists"


def test_a_profile_has_one_role(iam, refused):
    iam.create_role(RoleName="other", AssumeRolePolicyDocument=EC2)
    iam.create_instance_profile(InstanceProfileName="p")
    iam.add_role_to_instance_profile(InstanceProfileName="p", RoleName="node")
    assert refused(iam.add_role_to_instance_profile, InstanceProfileName="p", RoleName="other") == "LimitExceeded"


def test_profiles_are_listed_by_their_path(iam):
    iam.create_instance_profile(InstanceProfileName="made", Path="/karpenter/us-east-1/c/uid/")
    iam.create_instance_profile(InstanceProfileName="ours")
    iam.add_role_to_instance_profile(InstanceProfileName="ours", RoleName="node")

    def names(**asked):
        return {one["InstanceProfileName"] for one in iam.list_instance_profiles(**asked)["InstanceProfiles"]}

    assert names(PathPrefix="/karpenter/us-east-1/c/") == {"made"}
    assert names(PathPrefix="/karpenter/us-east-1/other/") == set()
    assert names() == {"made", "ours"}
    (ours,) = [one for one in iam.list_instance_profiles()["InstanceProfiles"] if one["Roles"]]
    assert [role["RoleName"] for role in ours["Roles"]] == ["node"]


def test_a_role_has_ten_managed_policies(iam, refused):
    for number in range(11):
        iam.create_policy(PolicyName=f"p{number}", PolicyDocument=ALLOW)
    arns = [f"arn:aws:iam::123456789012:policy/p{number}" for number in range(11)]
    for arn in arns[:10]:
        iam.attach_role_policy(RoleName="node", PolicyArn=arn)
    assert refused(iam.attach_role_policy, RoleName="node", PolicyArn=arns[10]) == "LimitExceeded"


def test_services_make_roles_for_themselves_that_nobody_else_changes(ground, cloud, refused):
    ground.up_with_nodes()
    roles = {role["RoleName"] for role in ground.iam.list_roles(PathPrefix="/aws-service-role/")["Roles"]}
    assert roles == {"AWSServiceRoleForAmazonEKS", "AWSServiceRoleForAmazonEKSNodegroup"}
    assert refused(ground.iam.delete_role, RoleName="AWSServiceRoleForAmazonEKS") == "UnmodifiableEntity"
    assert refused(ground.iam.create_service_linked_role, AWSServiceName="eks.amazonaws.com") == "InvalidInput"
    assert inventory(cloud)["iam:role"] == ["cluster", "node"]


def test_the_caller_is_of_the_sites_account(client):
    assert client("sts").get_caller_identity()["Account"] == "123456789012"
