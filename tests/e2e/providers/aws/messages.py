"""SQS, EventBridge and CloudWatch's logs: rows of the table."""

from typing import Any, ClassVar

from botocore.exceptions import ClientError

from tests.e2e.providers.aws.cloud import Cloud, code_of, gone_is_fine
from tests.e2e.providers.aws.kinds import JSON, TEXTS, Inputs, Kind, changed_tags, tag_list, tag_map
from tests.e2e.providers.values import Properties

_NO_QUEUE = ("NonExistentQueue", "QueueDoesNotExist")
_NO_RULE = "ResourceNotFoundException"
_ATTRIBUTES = {"messageRetentionSeconds": "MessageRetentionPeriod", "sqsManagedSseEnabled": "SqsManagedSseEnabled"}


class Queue(Kind):
    TYPE = "aws:sqs/queue:Queue"
    INPUTS: ClassVar[Inputs] = {
        "messageRetentionSeconds": int,
        "name": str,
        "sqsManagedSseEnabled": bool,
        "tags": TEXTS,
    }
    REPLACE = ("name",)
    DEFAULTS: ClassVar[Properties] = {"messageRetentionSeconds": 345600}
    NAME = "name"
    COMPUTED = ("arn", "sqsManagedSseEnabled", "tagsAll", "url")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        made = cloud.sqs.create_queue(
            QueueName=inputs["name"], Attributes=_attributes(inputs), tags=inputs.get("tags") or {}
        )
        return str(made["QueueUrl"])

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        found = _queue(cloud, identifier)
        if found is None:
            return None
        return {
            "arn": found["QueueArn"],
            "messageRetentionSeconds": int(found["MessageRetentionPeriod"]),
            "name": identifier.rpartition("/")[2],
            "sqsManagedSseEnabled": str(found.get("SqsManagedSseEnabled", "true")).lower() == "true",
            "tags": cloud.sqs.list_queue_tags(QueueUrl=identifier).get("Tags", {}),
            "url": identifier,
        }

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        if any(old.get(name) != new.get(name) for name in _ATTRIBUTES):
            cloud.sqs.set_queue_attributes(QueueUrl=identifier, Attributes=_attributes(new))
        to_set, to_drop = changed_tags(old, new)
        if to_drop:
            cloud.sqs.untag_queue(QueueUrl=identifier, TagKeys=to_drop)
        if to_set:
            cloud.sqs.tag_queue(QueueUrl=identifier, Tags=to_set)

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs, free_s
        with gone_is_fine(*_NO_QUEUE):
            cloud.sqs.delete_queue(QueueUrl=identifier)


class LogGroup(Kind):
    TYPE = "aws:cloudwatch/logGroup:LogGroup"
    INPUTS: ClassVar[Inputs] = {"name": str, "retentionInDays": int, "tags": TEXTS}
    REPLACE = ("name",)
    NAME = "name"
    COMPUTED = ("arn", "tagsAll")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        cloud.logs.create_log_group(logGroupName=inputs["name"], tags=inputs.get("tags") or {})
        return str(inputs["name"])

    def finish(self, cloud: Cloud, identifier: str, inputs: Properties, within_s: float) -> None:
        del within_s
        if "retentionInDays" in inputs:
            cloud.logs.put_retention_policy(logGroupName=identifier, retentionInDays=inputs["retentionInDays"])

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        listed = cloud.logs.describe_log_groups(logGroupNamePrefix=identifier)["logGroups"]
        found = next((one for one in listed if one["logGroupName"] == identifier), None)
        if found is None:
            return None
        arn = found["arn"].removesuffix(":*")
        return {
            "arn": arn,
            "name": identifier,
            "retentionInDays": found.get("retentionInDays"),
            "tags": cloud.logs.list_tags_for_resource(resourceArn=arn).get("tags", {}),
        }

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        arn = cloud.arn("logs", f"log-group:{identifier}")
        to_set, to_drop = changed_tags(old, new)
        if to_drop:
            cloud.logs.untag_resource(resourceArn=arn, tagKeys=to_drop)
        if to_set:
            cloud.logs.tag_resource(resourceArn=arn, tags=to_set)

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs, free_s
        with gone_is_fine(_NO_RULE):
            cloud.logs.delete_log_group(logGroupName=identifier)


class QueuePolicy(Kind):
    TYPE = "aws:sqs/queuePolicy:QueuePolicy"
    INPUTS: ClassVar[Inputs] = {"policy": JSON, "queueUrl": str}
    REQUIRED = ("policy", "queueUrl")
    REPLACE = ("queueUrl",)

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        _set_policy(cloud, inputs["queueUrl"], inputs["policy"])
        return str(inputs["queueUrl"])

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        found = _queue(cloud, identifier)
        return {"policy": found["Policy"], "queueUrl": identifier} if found and found.get("Policy") else None

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        del old
        _set_policy(cloud, identifier, new["policy"])

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs, free_s
        with gone_is_fine(*_NO_QUEUE):
            _set_policy(cloud, identifier, "")


class EventRule(Kind):
    TYPE = "aws:cloudwatch/eventRule:EventRule"
    INPUTS: ClassVar[Inputs] = {"description": str, "eventPattern": JSON, "name": str, "state": str, "tags": TEXTS}
    REPLACE = ("name",)
    DEFAULTS: ClassVar[Properties] = {"state": "ENABLED"}
    NAME = "name"
    COMPUTED = ("arn", "tagsAll")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        cloud.events.put_rule(**_rule(inputs), Tags=tag_list(inputs.get("tags")))
        return str(inputs["name"])

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        try:
            found = cloud.events.describe_rule(Name=identifier)
        except ClientError as error:
            if code_of(error) == _NO_RULE:
                return None
            raise
        return {
            "arn": found["Arn"],
            "description": found.get("Description") or None,
            "eventPattern": found.get("EventPattern"),
            "name": identifier,
            "state": found["State"],
            "tags": tag_map(cloud.events.list_tags_for_resource(ResourceARN=found["Arn"])["Tags"]),
        }

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        if _rule(old) != _rule(new):
            cloud.events.put_rule(**_rule(new))
        to_set, to_drop = changed_tags(old, new)
        arn = cloud.arn("events", f"rule/{identifier}")
        if to_drop:
            cloud.events.untag_resource(ResourceARN=arn, TagKeys=to_drop)
        if to_set:
            cloud.events.tag_resource(ResourceARN=arn, Tags=tag_list(to_set))

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs
        with gone_is_fine(_NO_RULE):
            cloud.once_free(lambda: cloud.events.delete_rule(Name=identifier), "has targets", free_s)


class EventTarget(Kind):
    TYPE = "aws:cloudwatch/eventTarget:EventTarget"
    INPUTS: ClassVar[Inputs] = {"arn": str, "rule": str, "targetId": str}
    REQUIRED = ("arn", "rule")
    REPLACE = ("rule", "targetId")
    NAME = "targetId"

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        _put_target(cloud, inputs)
        return f"{inputs['rule']}-{inputs['targetId']}"

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        rule, target = _rule_and_target(cloud, identifier)
        return {"arn": target["Arn"], "rule": rule, "targetId": target["Id"]} if target else None

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        del identifier, old
        _put_target(cloud, new)

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del identifier, outputs, free_s
        with gone_is_fine(_NO_RULE):
            cloud.events.remove_targets(Rule=inputs["rule"], Ids=[inputs["targetId"]])


def _attributes(inputs: Properties) -> dict[str, str]:
    given = {api: inputs[name] for name, api in _ATTRIBUTES.items() if name in inputs}
    return {name: str(value).lower() for name, value in given.items()}


def _queue(cloud: Cloud, url: str) -> dict[str, str] | None:
    try:
        return dict(cloud.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"])
    except ClientError as error:
        if code_of(error).endswith(_NO_QUEUE):
            return None
        raise


def _set_policy(cloud: Cloud, url: str, policy: str) -> None:
    cloud.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})


def _rule(inputs: Properties) -> dict[str, str]:
    names = {"Description": "description", "EventPattern": "eventPattern", "Name": "name", "State": "state"}
    return {api: inputs[name] for api, name in names.items() if name in inputs}


def _put_target(cloud: Cloud, inputs: Properties) -> None:
    target = {"Id": inputs["targetId"], "Arn": inputs["arn"]}
    answer = cloud.events.put_targets(Rule=inputs["rule"], Targets=[target])
    for refused in answer.get("FailedEntries", []):
        code, message = refused["ErrorCode"], refused.get("ErrorMessage", "")
        raise ClientError({"Error": {"Code": code, "Message": message}}, "PutTargets")


def _rule_and_target(cloud: Cloud, identifier: str) -> tuple[str, Any]:
    # Both parts may hold hyphens, so each cut that names a rule is tried.
    cuts = [index for index, letter in enumerate(identifier) if letter == "-"]
    for cut in reversed(cuts):
        rule, name = identifier[:cut], identifier[cut + 1 :]
        try:
            targets = cloud.events.list_targets_by_rule(Rule=rule)["Targets"]
        except ClientError as error:
            if code_of(error) == _NO_RULE:
                continue
            raise
        for target in targets:
            if target["Id"] == name:
                return rule, target
    return "", None
