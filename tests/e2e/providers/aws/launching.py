"""What node groups are launched from: a row of the table."""

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.e2e.providers.aws.cloud import Cloud
from tests.e2e.providers.aws.ec2 import Ec2Kind
from tests.e2e.providers.aws.kinds import TEXTS, Inputs, tag_list
from tests.e2e.providers.values import Properties


class LaunchTemplate(Ec2Kind):
    TYPE = "aws:ec2/launchTemplate:LaunchTemplate"
    TAGGED_AS = "launch-template"
    ABSENT = "InvalidLaunchTemplateId.NotFound"
    INPUTS: ClassVar[Inputs] = {
        "blockDeviceMappings": [
            {
                "deviceName": str,
                "ebs": {"deleteOnTermination": str, "encrypted": str, "volumeSize": int, "volumeType": str},
            }
        ],
        "metadataOptions": {"httpEndpoint": str, "httpPutResponseHopLimit": int, "httpTokens": str},
        "name": str,
        "tagSpecifications": [{"resourceType": str, "tags": TEXTS}],
        "tags": TEXTS,
        "updateDefaultVersion": bool,
    }
    REPLACE = ("name",)
    NAME = "name"
    COMPUTED = ("arn", "defaultVersion", "latestVersion", "tagsAll")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        made = cloud.ec2.create_launch_template(
            LaunchTemplateName=inputs["name"], LaunchTemplateData=_data(inputs), **self._tags(inputs)
        )
        return str(made["LaunchTemplate"]["LaunchTemplateId"])

    def described(self, cloud: Cloud, identifier: str) -> list[dict[str, Any]]:
        return list(cloud.ec2.describe_launch_templates(LaunchTemplateIds=[identifier])["LaunchTemplates"])

    def shown(self, cloud: Cloud, identifier: str, found: Mapping[str, Any]) -> Properties:
        versions = cloud.ec2.describe_launch_template_versions(LaunchTemplateId=identifier, Versions=["$Latest"])
        return {
            "arn": cloud.arn("ec2", f"launch-template/{identifier}"),
            "defaultVersion": found["DefaultVersionNumber"],
            "latestVersion": found["LatestVersionNumber"],
            "name": found["LaunchTemplateName"],
            **_asked(versions["LaunchTemplateVersions"][0]["LaunchTemplateData"]),
        }

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        super().change(cloud, identifier, old, new)
        if _data(old) == _data(new):
            return
        made = cloud.ec2.create_launch_template_version(LaunchTemplateId=identifier, LaunchTemplateData=_data(new))
        if new.get("updateDefaultVersion"):
            number = str(made["LaunchTemplateVersion"]["VersionNumber"])
            cloud.ec2.modify_launch_template(LaunchTemplateId=identifier, DefaultVersion=number)

    def deleted(self, cloud: Cloud, identifier: str) -> None:
        cloud.ec2.delete_launch_template(LaunchTemplateId=identifier)


def _data(inputs: Properties) -> dict[str, Any]:
    """As EC2 takes it: the provider's `encrypted` is text, for three values of it."""
    options = inputs.get("metadataOptions") or {}
    return {
        "BlockDeviceMappings": [
            {"DeviceName": one["deviceName"], "Ebs": {_cased(k): _switch(v) for k, v in one["ebs"].items()}}
            for one in inputs.get("blockDeviceMappings") or []
        ],
        "MetadataOptions": {_cased(name): value for name, value in options.items()},
        "TagSpecifications": [
            {"ResourceType": one["resourceType"], "Tags": tag_list(one["tags"])}
            for one in inputs.get("tagSpecifications") or []
        ],
    }


def _asked(data: Mapping[str, Any]) -> Properties:
    """The other way round; sizes may come as text."""
    mappings = [
        {"deviceName": one["DeviceName"], "ebs": {_lower(k): _text(k, v) for k, v in one["Ebs"].items()}}
        for one in data.get("BlockDeviceMappings") or []
    ]
    options = {_lower(name): _text(name, value) for name, value in (data.get("MetadataOptions") or {}).items()}
    specifications = [
        {"resourceType": one["ResourceType"], "tags": {tag["Key"]: tag["Value"] for tag in one["Tags"]}}
        for one in data.get("TagSpecifications") or []
        # moto puts the template's own tags among those of what it launches; EC2 doesn't.
        if one["ResourceType"] != "launch-template"
    ]
    return {"blockDeviceMappings": mappings, "metadataOptions": options, "tagSpecifications": specifications}


def _cased(name: str) -> str:
    return name[0].upper() + name[1:]


def _lower(name: str) -> str:
    return name[0].lower() + name[1:]


def _switch(value: Any) -> Any:
    return value == "true" if value in ("true", "false") else value


def _text(name: str, value: Any) -> Any:
    if name in ("VolumeSize", "HttpPutResponseHopLimit"):
        return int(value)
    return str(value).lower() if isinstance(value, bool) else value
