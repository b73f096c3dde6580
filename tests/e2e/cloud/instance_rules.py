"""EC2 instances, their interfaces and placement groups: refusals, and what moto has not."""

from collections.abc import Mapping
from typing import Any

from tests.e2e.cloud.account import Account, Facts, tags_as_list
from tests.e2e.cloud.wire import Answer, Call, Refusal


def launch_is_possible(account: Account, call: Call) -> None:
    """Image, type, subnet, groups, profile and placement group exist; moto starts almost anything."""
    asked = launch_facts(account, call.params)
    ec2 = account.ec2
    if asked["ImageId"] not in ec2.amis:
        raise Refusal("InvalidAMIID.NotFound", f"The image id '[{asked['ImageId']}]' does not exist")
    if asked["InstanceType"] not in {one.name for one in ec2.instance_types}:
        raise Refusal("InvalidInstanceType", f"Invalid value '{asked['InstanceType']}' for InstanceType.")
    if not asked["Subnets"]:
        raise Refusal("VPCIdNotSpecified", "No default VPC for this user")
    subnets = account.subnets(asked["Subnets"])
    for group_id in asked["Groups"]:
        group = account.security_group(group_id)
        if group is None or group.vpc_id != subnets[0].vpc_id:
            raise Refusal(
                "InvalidGroup.NotFound", f"The security group '{group_id}' does not exist in the subnet's VPC"
            )
    _check_profile(account, asked["Profile"])
    if asked["PlacementGroup"] and asked["PlacementGroup"] not in account.own.placement_groups:
        raise Refusal("InvalidPlacementGroup.Unknown", f"The Placement Group '{asked['PlacementGroup']}' is unknown.")


def launch_facts(account: Account, params: Mapping[str, Any]) -> dict[str, Any]:
    """What a launch asks for, its launch template underneath."""
    asked = {**_template(account, params.get("LaunchTemplate")), **params}
    interfaces = asked.get("NetworkInterfaces") or []
    profile = asked.get("IamInstanceProfile") or {}
    return {
        "ImageId": asked.get("ImageId", ""),
        "InstanceType": asked.get("InstanceType", "m1.small"),
        "Subnets": [*_given([asked.get("SubnetId")]), *_given([one.get("SubnetId") for one in interfaces])],
        "Groups": [*(asked.get("SecurityGroupIds") or []), *(g for one in interfaces for g in one.get("Groups") or [])],
        "Profile": profile.get("Name") or str(profile.get("Arn", "")).rpartition("/")[2],
        "PlacementGroup": (asked.get("Placement") or {}).get("GroupName", ""),
    }


def _given(values: list[str | None]) -> list[str]:
    return [one for one in values if one]


def _template(account: Account, asked: Mapping[str, Any] | None) -> dict[str, Any]:
    if not asked:
        return {}
    ec2, by_id, name = account.ec2, asked.get("LaunchTemplateId"), asked.get("LaunchTemplateName")
    template_id = by_id or ec2.launch_template_name_to_ids.get(name)
    if template_id not in ec2.launch_templates:
        raise Refusal(
            "InvalidLaunchTemplateId.NotFound" if by_id else "InvalidLaunchTemplateName.NotFoundException",
            f"The specified launch template, {by_id or name}, does not exist.",
        )
    data: dict[str, Any] = ec2.launch_templates[template_id].latest_version().data
    return data


def _check_profile(account: Account, name: str) -> None:
    profiles = {one.name: one for one in account.iam.instance_profiles.values()}
    if name and name not in profiles:
        raise Refusal(
            "InvalidParameterValue", f"Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM "
            "Instance Profile name",
        )  # fmt: skip
    if name and not profiles[name].roles:
        raise Refusal("InvalidParameterValue", f"IAM Instance Profile {name} has no associated IAM Roles")


def launched(account: Account, call: Call, answer: Answer) -> None:
    """Their interfaces are in use and go with them, as EC2's own primary ones do."""
    group = launch_facts(account, call.params)["PlacementGroup"]
    made = {one["InstanceId"] for one in answer["Instances"]}
    for instance in account.instances():
        if instance.id in made:
            instance.placement.group_name = group
            for interface in instance.nics.values():
                interface.status = "in-use"
                interface.delete_on_termination = True


def terminate_instances(account: Account, call: Call) -> Answer:
    """They shut down first, and keep their interfaces meanwhile: until somebody looks how far they are."""
    found = account.ec2.get_multi_instances_by_id(call.params["InstanceIds"])
    changed = []
    for instance in found:
        if instance.disable_api_termination is True:
            raise Refusal(
                "OperationNotPermitted",
                f"The instance '{instance.id}' may not be terminated. Modify its 'disableApiTermination' instance "
                "attribute and try again.",
            )
    for instance in found:
        before = {"Code": instance._state.code, "Name": instance._state.name}
        if instance.state != "terminated":
            instance._state.name, instance._state.code = "shutting-down", 32
        now = {"Code": instance._state.code, "Name": instance._state.name}
        changed.append({"InstanceId": instance.id, "CurrentState": now, "PreviousState": before})
    return {"TerminatingInstances": changed}


def settle_instances(account: Account, _: Call) -> None:
    """Who looks at instances sees those that were shutting down terminated, their interfaces and volumes gone."""
    for instance in account.instances():
        if instance.state == "shutting-down":
            end_instance(account, instance)


def end_instance(account: Account, instance: Any) -> None:
    """Terminate at once."""
    interfaces = [one.id for one in instance.nics.values()]
    volumes = [device.volume_id for device in instance.block_device_mapping.values()]
    for device in instance.block_device_mapping.values():
        device.delete_on_termination = True
    account.ec2.terminate_instances([instance.id])
    for interface in interfaces:
        account.release_interface(interface)
    for volume in volumes:
        account.ec2.volumes.pop(volume, None)


def create_placement_group(account: Account, call: Call) -> Answer:
    """moto has no placement groups."""
    name = call.params.get("GroupName", "")
    if not name or len(name) > 255:
        raise Refusal(
            "InvalidParameterValue", f"Value ({name}) for parameter groupName is invalid: 1 to 255 characters"
        )
    if name in account.own.placement_groups:
        raise Refusal("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
    group_id = account.new_id("pg-")
    account.own.placement_groups[name] = {
        "GroupName": name,
        "GroupId": group_id,
        "GroupArn": account.arn("ec2", f"placement-group/{name}"),
        "Strategy": call.params.get("Strategy", "cluster"),
        "State": "available",
    }
    for specification in call.params.get("TagSpecifications") or []:
        account.ec2.create_tags([group_id], {tag["Key"]: tag["Value"] for tag in specification["Tags"]})
    return {"PlacementGroup": _shown(account, account.own.placement_groups[name])}


def delete_placement_group(account: Account, call: Call) -> Answer:
    """Nothing may stand in it, however much it is shutting down."""
    name = call.params["GroupName"]
    if name not in account.own.placement_groups:
        raise Refusal("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    if any(instance.placement.group_name == name for instance in account.instances()):
        raise Refusal("InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use and may not be deleted.")
    del account.own.placement_groups[name]
    return {}


def describe_placement_groups(account: Account, call: Call) -> Answer:
    """By name, id or filter."""
    names, ids = call.params.get("GroupNames") or [], call.params.get("GroupIds") or []
    unknown = set(names) - set(account.own.placement_groups)
    if unknown:
        raise Refusal("InvalidPlacementGroup.Unknown", f"The Placement Group '{sorted(unknown)[0]}' is unknown.")
    shown = [_shown(account, one) for one in account.own.placement_groups.values()]
    filters = call.params.get("Filters") or []
    return {
        "PlacementGroups": [
            one
            for one in shown
            if (not names or one["GroupName"] in names)
            and (not ids or one["GroupId"] in ids)
            and all(_matches(one, wanted) for wanted in filters)
        ]
    }


def create_tags(account: Account, call: Call) -> Answer | None:
    """Of placement groups, whose ids moto doesn't take; everything else is moto's."""
    if not _of_groups(account, call):
        return None
    account.ec2.create_tags(call.params["Resources"], {tag["Key"]: tag["Value"] for tag in call.params["Tags"]})
    return {}


def delete_tags(account: Account, call: Call) -> Answer | None:
    """Of placement groups; everything else is moto's."""
    if not _of_groups(account, call):
        return None
    for group_id in call.params["Resources"]:
        for tag in call.params["Tags"]:
            account.ec2.tags[group_id].pop(tag["Key"], None)
    return {}


def _of_groups(account: Account, call: Call) -> bool:
    asked = [one for one in call.params["Resources"] if one.startswith("pg-")]
    unknown = set(asked) - {group["GroupId"] for group in account.own.placement_groups.values()}
    if unknown:
        raise Refusal("InvalidPlacementGroupId.NotFound", f"The placement group {sorted(unknown)[0]} does not exist")
    return bool(asked)


def _shown(account: Account, group: Facts) -> Facts:
    return {**group, "Tags": tags_as_list(account.ec2.tags.get(group["GroupId"], {}))}


_GROUP_FILTERS = {"group-name": "GroupName", "group-arn": "GroupArn", "state": "State", "strategy": "Strategy"}


def _matches(group: Facts, wanted: Mapping[str, Any]) -> bool:
    name, values = wanted["Name"], wanted["Values"]
    tags = {tag["Key"]: tag["Value"] for tag in group["Tags"]}
    if name.startswith("tag:"):
        return tags.get(name.removeprefix("tag:")) in values
    if name == "tag-key":
        return bool(set(tags) & set(values))
    if name not in _GROUP_FILTERS:
        raise Refusal("InvalidParameterValue", f"The filter '{name}' is invalid")
    return group[_GROUP_FILTERS[name]] in values
