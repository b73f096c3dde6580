"""What IAM refuses and moto lets pass, and the roles that services make for themselves."""

import json
import re
from typing import Any

from tests.e2e.cloud.account import Account, Facts
from tests.e2e.cloud.wire import Answer, Call, Refusal

_NAME = re.compile(r"[\w+=,.@-]+")
_LIMITS = {"RoleName": 64, "InstanceProfileName": 128, "PolicyName": 128}
_POLICY_CHARACTERS = 6144
"""Of a managed policy, white space apart."""
_POLICIES_A_ROLE = 10


def names_fit(_: Account, call: Call) -> None:
    """Length and characters of what is made."""
    for parameter, limit in _LIMITS.items():
        name = call.params.get(parameter)
        if name is not None and (len(name) > limit or not _NAME.fullmatch(name)):
            raise Refusal(
                "ValidationError",
                f"1 validation error detected: Value '{name}' at '{parameter}' failed to satisfy constraint: at most "
                f"{limit} characters of [\\w+=,.@-]",
            )


def policy_fits(_: Account, call: Call) -> None:
    """The quota of a managed policy's document."""
    if len("".join(call.params["PolicyDocument"].split())) > _POLICY_CHARACTERS:
        raise Refusal("LimitExceeded", f"Cannot exceed quota for PolicySize: {_POLICY_CHARACTERS}")


def trust_is_a_policy(_: Account, call: Call) -> None:
    """A trust policy is JSON and somebody may take the role."""
    try:
        statements = json.loads(call.params["AssumeRolePolicyDocument"])["Statement"]
    except (ValueError, KeyError, TypeError):
        raise Refusal("MalformedPolicyDocument", "This policy contains invalid Json") from None
    for statement in statements if isinstance(statements, list) else [statements]:
        if not statement.get("Principal"):
            raise Refusal("MalformedPolicyDocument", "AssumeRolepolicy must contain principal")


def policy_unattached(account: Account, call: Call) -> None:
    """moto deletes a policy under the roles that have it."""
    arn = call.params["PolicyArn"]
    if any(arn in role.managed_policies for role in account.iam.roles.values()):
        raise Refusal("DeleteConflict", "Cannot delete a policy attached to entities.")


def role_has_room(account: Account, call: Call) -> None:
    """The quota of managed policies of one role."""
    role = account.role(call.params["RoleName"])
    if role is not None and len(role.managed_policies) >= _POLICIES_A_ROLE:
        raise Refusal("LimitExceeded", f"Cannot exceed quota for PoliciesPerRole: {_POLICIES_A_ROLE}")


def role_is_ours(account: Account, call: Call) -> None:
    """A service's own role changes through the service alone."""
    role = account.role(call.params["RoleName"])
    if role is not None and is_linked(role):
        raise Refusal(
            "UnmodifiableEntity",
            f"Cannot perform the operation on the protected role '{role.name}' - this role is only modifiable by AWS",
        )


def linked_role_is_new(account: Account, call: Call) -> None:
    """A service has one in an account."""
    service = call.params["AWSServiceName"]
    if any(is_linked(role) and f"/{service}/" in role.path for role in account.iam.roles.values()):
        raise Refusal(
            "InvalidInput", f"Service role of {service} has been taken in this account, please try a different suffix."
        )


def is_linked(role: Any) -> bool:
    """Whether a service made it for itself."""
    return str(role.path).startswith("/aws-service-role/")


def link_role(account: Account, service: str, name: str) -> None:
    """What a service does at its first use in an account."""
    if account.role(name) is None:
        trust = {"Statement": [{"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}]}
        account.iam.create_role(
            role_name=name,
            assume_role_policy_document=json.dumps({"Version": "2012-10-17", **trust}),
            path=f"/aws-service-role/{service}/",
            permissions_boundary=None,
            description="",
            tags=[],
            max_session_duration="3600",
            linked_service=service,
        )


def trusts(role: Any, service: str) -> bool:
    """Whether the service may take the role."""
    statements = json.loads(role.assume_role_policy_document)["Statement"]
    named = [
        one["Principal"].get("Service", []) for one in (statements if isinstance(statements, list) else [statements])
    ]
    return any(service == one or service in one for one in named)


def list_instance_profiles(account: Account, call: Call) -> Answer:
    """Those under the path that is asked for: moto gives all, and Karpenter deletes any that isn't in its use."""
    prefix = call.params.get("PathPrefix", "/")
    found = [one for one in account.iam.instance_profiles.values() if one.path.startswith(prefix)]
    return {"InstanceProfiles": [_profile(one) for one in found], "IsTruncated": False}


def _profile(profile: Any) -> Facts:
    roles = [
        {"Path": role.path, "RoleName": role.name, "RoleId": role.id, "Arn": role.arn, "CreateDate": role.create_date}
        for role in profile.roles
    ]
    return {
        "Path": profile.path,
        "InstanceProfileName": profile.name,
        "InstanceProfileId": profile.id,
        "Arn": profile.arn,
        "CreateDate": profile.create_date,
        "Roles": roles,
    }
