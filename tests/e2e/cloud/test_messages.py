"""Queues, rules and buckets of the account."""

import json
import threading
import time
from typing import Any

import pytest

from tests.e2e.cloud.inventory import inventory

pytestmark = pytest.mark.e2e


def test_a_rule_stays_while_it_has_targets(client, cloud, refused):
    events = client("events")
    events.put_rule(Name="on-spot", EventPattern=json.dumps({"source": ["aws.ec2"]}))
    events.put_targets(Rule="on-spot", Targets=[{"Id": "karpenter", "Arn": "arn:aws:sqs:us-east-1:123456789012:q"}])
    assert refused(events.delete_rule, Name="on-spot") == "ValidationException"

    events.remove_targets(Rule="on-spot", Ids=["karpenter"])
    events.delete_rule(Name="on-spot")
    assert inventory(cloud) == {}


@pytest.mark.parametrize(
    ("service", "action", "arguments", "code"),
    [
        ("events", "put_targets", {"Rule": "no", "Targets": [{"Id": "a", "Arn": "arn:aws:sqs:us-east-1:1:q"}]},
         "ResourceNotFoundException"),
        ("events", "put_rule", {"Name": "a", "EventPattern": "{"}, "InvalidEventPatternException"),
        ("sqs", "create_queue", {"QueueName": "q" * 81}, "InvalidParameterValue"),
        ("sqs", "get_queue_url", {"QueueName": "no"}, "AWS.SimpleQueueService.NonExistentQueue"),
        ("s3", "create_bucket", {"Bucket": "Upper"}, "InvalidBucketName"),
        ("s3", "delete_bucket", {"Bucket": "nobody"}, "NoSuchBucket"),
    ],
)  # fmt: skip
def test_what_they_refuse(client, refused, service, action, arguments, code):
    assert refused(getattr(client(service), action), **arguments) == code


def test_a_queues_name_is_given_once_with_other_attributes(client, refused):
    sqs = client("sqs")
    sqs.create_queue(QueueName="q", Attributes={"MessageRetentionPeriod": "300"})
    other = {"QueueName": "q", "Attributes": {"MessageRetentionPeriod": "600"}}
    assert refused(sqs.create_queue, **other) in {"QueueAlreadyExists", "QueueNameExists"}


def test_a_bucket_stays_while_any_version_of_an_object_is_in_it(client, cloud, refused):
    s3 = client("s3")
    s3.create_bucket(Bucket="records")
    s3.put_bucket_versioning(Bucket="records", VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket="records", Key="a", Body=b"1")
    s3.delete_object(Bucket="records", Key="a")
    assert refused(s3.delete_bucket, Bucket="records") == "BucketNotEmpty"

    versions = s3.list_object_versions(Bucket="records")
    for one in [*versions["Versions"], *versions["DeleteMarkers"]]:
        s3.delete_object(Bucket="records", Key="a", VersionId=one["VersionId"])
    s3.delete_bucket(Bucket="records")
    assert inventory(cloud) == {}


def test_the_records_buckets_guards_are_kept_as_they_were_put(client):
    s3 = client("s3")
    s3.create_bucket(Bucket="records")
    closed = dict.fromkeys(("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True)
    s3.put_public_access_block(Bucket="records", PublicAccessBlockConfiguration=closed)
    rule = {"ID": "leftovers", "Status": "Enabled", "Filter": {"Prefix": ""},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}}  # fmt: skip
    s3.put_bucket_lifecycle_configuration(Bucket="records", LifecycleConfiguration={"Rules": [rule]})
    policy = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "*"}],
    }
    s3.put_bucket_policy(Bucket="records", Policy=json.dumps(policy))

    assert s3.get_public_access_block(Bucket="records")["PublicAccessBlockConfiguration"] == closed
    assert s3.get_bucket_lifecycle_configuration(Bucket="records")["Rules"][0]["ID"] == "leftovers"
    assert json.loads(s3.get_bucket_policy(Bucket="records")["Policy"]) == policy


def test_an_object_comes_back_as_it_was(client, log):
    s3 = client("s3")
    s3.create_bucket(Bucket="records")
    body = bytes(range(256)) * 1000
    s3.put_object(Bucket="records", Key="run/record.json", Body=body)
    assert s3.get_object(Bucket="records", Key="run/record.json")["Body"].read() == body
    assert ("PutObject", "records/run/record.json", "ok") in log()


def test_who_waits_for_a_message_holds_nobody_up_and_gets_it_when_it_comes(client):
    sqs = client("sqs")
    queue = sqs.create_queue(QueueName="q")["QueueUrl"]
    got: list[dict[str, Any]] = []

    def wait() -> None:
        # Karpenter asks for messages so, all day long.
        got.append(client("sqs").receive_message(QueueUrl=queue, WaitTimeSeconds=20))

    waiting = threading.Thread(target=wait)
    waiting.start()
    began = time.monotonic()
    sqs.send_message(QueueUrl=queue, MessageBody="spot interruption")
    waiting.join()
    assert [one["Body"] for one in got[0]["Messages"]] == ["spot interruption"]
    assert time.monotonic() - began < 10
