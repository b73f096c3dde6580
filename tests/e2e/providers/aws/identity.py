"""IAM: roles, policies, instance profiles: rows of the table."""

import json
import urllib.parse
from collections.abc import Callable
from typing import Any, ClassVar

from botocore.exceptions import ClientError

from tests.e2e.providers.aws.cloud import Cloud, code_of, gone_is_fine
from tests.e2e.providers.aws.kinds import JSON, TEXTS, Inputs, Kind, changed_tags, tag_list, tag_map
from tests.e2e.providers.values import Properties

_GONE = "NoSuchEntity"
_DEPENDED_ON = "DeleteConflict"
_VERSIONS = 5
"""IAM keeps so many versions of a policy."""


class Role(Kind):
    TYPE = "aws:iam/role:Role"
    INPUTS: ClassVar[Inputs] = {
        "assumeRolePolicy": JSON,
        "description": str,
        "name": str,
        "permissionsBoundary": str,
        "tags": TEXTS,
    }
    REQUIRED = ("assumeRolePolicy",)
    REPLACE = ("name",)
    NAME = "name"
    COMPUTED = ("arn", "tagsAll", "uniqueId")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        names = {"description": "Description", "permissionsBoundary": "PermissionsBoundary"}
        described = {theirs: inputs[ours] for ours, theirs in names.items() if ours in inputs}
        cloud.iam.create_role(
            RoleName=inputs["name"],
            AssumeRolePolicyDocument=inputs["assumeRolePolicy"],
            Tags=tag_list(inputs.get("tags")),
            **described,
        )
        return str(inputs["name"])

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        found = _found(lambda: cloud.iam.get_role(RoleName=identifier)["Role"])
        if found is None:
            return None
        return {
            "arn": found["Arn"],
            "assumeRolePolicy": _document(found["AssumeRolePolicyDocument"]),
            "description": found.get("Description") or None,
            "name": identifier,
            "permissionsBoundary": (found.get("PermissionsBoundary") or {}).get("PermissionsBoundaryArn"),
            "tags": tag_map(found.get("Tags")),
            "uniqueId": found["RoleId"],
        }

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        if old.get("assumeRolePolicy") != new["assumeRolePolicy"]:
            cloud.iam.update_assume_role_policy(RoleName=identifier, PolicyDocument=new["assumeRolePolicy"])
        if old.get("description") != new.get("description"):
            cloud.iam.update_role(RoleName=identifier, Description=new.get("description", ""))
        self._bound(cloud, identifier, old.get("permissionsBoundary"), new.get("permissionsBoundary"))
        to_set, to_drop = changed_tags(old, new)
        if to_drop:
            cloud.iam.untag_role(RoleName=identifier, TagKeys=to_drop)
        if to_set:
            cloud.iam.tag_role(RoleName=identifier, Tags=tag_list(to_set))

    def _bound(self, cloud: Cloud, identifier: str, old: str | None, new: str | None) -> None:
        if new is not None and new != old:
            cloud.iam.put_role_permissions_boundary(RoleName=identifier, PermissionsBoundary=new)
        if new is None and old is not None:
            cloud.iam.delete_role_permissions_boundary(RoleName=identifier)

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs
        with gone_is_fine(_GONE):
            # As the real provider, which takes a role out of its instance profiles but not off its policies.
            for profile in cloud.iam.list_instance_profiles_for_role(RoleName=identifier)["InstanceProfiles"]:
                cloud.iam.remove_role_from_instance_profile(
                    InstanceProfileName=profile["InstanceProfileName"], RoleName=identifier
                )
            cloud.once_free(lambda: cloud.iam.delete_role(RoleName=identifier), _DEPENDED_ON, free_s)


class Policy(Kind):
    TYPE = "aws:iam/policy:Policy"
    INPUTS: ClassVar[Inputs] = {"description": str, "name": str, "policy": JSON, "tags": TEXTS}
    REQUIRED = ("policy",)
    REPLACE = ("description", "name")
    NAME = "name"
    COMPUTED = ("arn", "policyId", "tagsAll")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        described = {"Description": inputs["description"]} if "description" in inputs else {}
        made = cloud.iam.create_policy(
            PolicyName=inputs["name"],
            PolicyDocument=inputs["policy"],
            Tags=tag_list(inputs.get("tags")),
            **described,
        )
        return str(made["Policy"]["Arn"])

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        found = _found(lambda: cloud.iam.get_policy(PolicyArn=identifier)["Policy"])
        if found is None:
            return None
        version = cloud.iam.get_policy_version(PolicyArn=identifier, VersionId=found["DefaultVersionId"])
        return {
            "arn": identifier,
            "description": found.get("Description") or None,
            "name": found["PolicyName"],
            "policy": _document(version["PolicyVersion"]["Document"]),
            "policyId": found["PolicyId"],
            "tags": tag_map(found.get("Tags")),
        }

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        if old.get("policy") != new["policy"]:
            for version in _spare_versions(cloud, identifier)[_VERSIONS - 2 :]:
                cloud.iam.delete_policy_version(PolicyArn=identifier, VersionId=version)
            cloud.iam.create_policy_version(PolicyArn=identifier, PolicyDocument=new["policy"], SetAsDefault=True)
        to_set, to_drop = changed_tags(old, new)
        if to_drop:
            cloud.iam.untag_policy(PolicyArn=identifier, TagKeys=to_drop)
        if to_set:
            cloud.iam.tag_policy(PolicyArn=identifier, Tags=tag_list(to_set))

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs
        with gone_is_fine(_GONE):
            for version in _spare_versions(cloud, identifier):
                cloud.iam.delete_policy_version(PolicyArn=identifier, VersionId=version)
            cloud.once_free(lambda: cloud.iam.delete_policy(PolicyArn=identifier), _DEPENDED_ON, free_s)


class RolePolicy(Kind):
    TYPE = "aws:iam/rolePolicy:RolePolicy"
    INPUTS: ClassVar[Inputs] = {"name": str, "policy": JSON, "role": str}
    REQUIRED = ("policy", "role")
    REPLACE = ("name", "role")
    NAME = "name"

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        _put(cloud, inputs)
        return f"{inputs['role']}:{inputs['name']}"

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        role, _, name = identifier.partition(":")
        found = _found(lambda: cloud.iam.get_role_policy(RoleName=role, PolicyName=name))
        if found is None:
            return None
        return {"name": name, "policy": _document(found["PolicyDocument"]), "role": role}

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        del identifier, old
        _put(cloud, new)

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs, free_s
        role, _, name = identifier.partition(":")
        with gone_is_fine(_GONE):
            cloud.iam.delete_role_policy(RoleName=role, PolicyName=name)


class RolePolicyAttachment(Kind):
    TYPE = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    INPUTS: ClassVar[Inputs] = {"policyArn": str, "role": str}
    REQUIRED = ("policyArn", "role")
    REPLACE = ("policyArn", "role")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        cloud.iam.attach_role_policy(RoleName=inputs["role"], PolicyArn=inputs["policyArn"])
        return f"{inputs['role']}/{inputs['policyArn']}"

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        role, _, arn = identifier.partition("/")
        pages = cloud.iam.get_paginator("list_attached_role_policies").paginate(RoleName=role)
        attached = _found(lambda: [one["PolicyArn"] for page in pages for one in page["AttachedPolicies"]])
        return {"policyArn": arn, "role": role} if attached and arn in attached else None

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs, free_s
        role, _, arn = identifier.partition("/")
        with gone_is_fine(_GONE):
            cloud.iam.detach_role_policy(RoleName=role, PolicyArn=arn)


class InstanceProfile(Kind):
    TYPE = "aws:iam/instanceProfile:InstanceProfile"
    INPUTS: ClassVar[Inputs] = {"name": str, "role": str, "tags": TEXTS}
    REPLACE = ("name",)
    NAME = "name"
    COMPUTED = ("arn", "tagsAll", "uniqueId")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        cloud.iam.create_instance_profile(InstanceProfileName=inputs["name"], Tags=tag_list(inputs.get("tags")))
        return str(inputs["name"])

    def finish(self, cloud: Cloud, identifier: str, inputs: Properties, within_s: float) -> None:
        del within_s
        there, wanted = (self.live(cloud, identifier) or {}).get("role"), inputs.get("role")
        if there != wanted and there:
            cloud.iam.remove_role_from_instance_profile(InstanceProfileName=identifier, RoleName=there)
        if there != wanted and wanted:
            cloud.iam.add_role_to_instance_profile(InstanceProfileName=identifier, RoleName=wanted)

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        found = _found(lambda: cloud.iam.get_instance_profile(InstanceProfileName=identifier)["InstanceProfile"])
        if found is None:
            return None
        roles = [role["RoleName"] for role in found["Roles"]]
        return {
            "arn": found["Arn"],
            "name": identifier,
            "role": roles[0] if roles else None,
            "tags": tag_map(found.get("Tags")),
            "uniqueId": found["InstanceProfileId"],
        }

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        to_set, to_drop = changed_tags(old, new)
        if to_drop:
            cloud.iam.untag_instance_profile(InstanceProfileName=identifier, TagKeys=to_drop)
        if to_set:
            cloud.iam.tag_instance_profile(InstanceProfileName=identifier, Tags=tag_list(to_set))

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs
        live = self.live(cloud, identifier)
        with gone_is_fine(_GONE):
            if live and live["role"]:
                cloud.iam.remove_role_from_instance_profile(InstanceProfileName=identifier, RoleName=live["role"])
            cloud.once_free(
                lambda: cloud.iam.delete_instance_profile(InstanceProfileName=identifier), _DEPENDED_ON, free_s
            )


def _found(get: Callable[[], Any]) -> Any:
    try:
        return get()
    except ClientError as error:
        if code_of(error) == _GONE:
            return None
        raise


def _document(value: Any) -> str:
    # botocore hands most documents over as parsed JSON, IAM sends them URL-encoded.
    return urllib.parse.unquote(value) if isinstance(value, str) else json.dumps(value)


def _put(cloud: Cloud, inputs: Properties) -> None:
    cloud.iam.put_role_policy(RoleName=inputs["role"], PolicyName=inputs["name"], PolicyDocument=inputs["policy"])


def _spare_versions(cloud: Cloud, arn: str) -> list[str]:
    """Those that aren't the default, the youngest first."""
    listed = cloud.iam.list_policy_versions(PolicyArn=arn)["Versions"]
    spare = [one["VersionId"] for one in listed if not one["IsDefaultVersion"]]
    return sorted(spare, key=lambda version: int(version[1:]), reverse=True)
