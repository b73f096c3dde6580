"""What training pods may do in AWS."""

import json
from typing import Any

import pytest

from infra.trainer_rights import trainer_policy
from tests.pulumi_engine import registered


def statements(records: str, data: str | None = None) -> dict[str, dict[str, Any]]:
    document = json.loads(json.dumps(trainer_policy("aws", records, data)))
    return {s["Sid"]: s for s in document["Statement"]}


def test_records_are_written_read_and_listed_under_their_prefix_alone():
    found = statements("s3://bucket/some/prefix")
    assert found["RecordsObjects"]["Action"] == ["s3:GetObject", "s3:PutObject"]
    assert found["RecordsObjects"]["Resource"] == ["arn:aws:s3:::bucket/some/prefix/*"]
    assert found["RecordsList"]["Resource"] == ["arn:aws:s3:::bucket"]
    (listed,) = found["RecordsList"]["Condition"].values()
    assert listed == {"s3:prefix": ["", "some/prefix", "some/prefix/*"]}


@pytest.mark.parametrize("sid", ["RecordsList", "DataList"])
def test_an_absent_key_is_answered_as_absent_because_a_question_without_a_prefix_is_allowed(sid):
    # S3 answers HeadObject of an absent key with 404 to who may list the bucket, and with 403 to others.
    found = statements("s3://bucket/some/prefix", "s3://texts/english")
    assert list(found[sid]["Condition"]) == ["StringLikeIfExists"]
    assert found[sid]["Action"] == ["s3:ListBucket"]


def test_a_bucket_of_the_stack_is_the_trainers_whole():
    assert statements("s3://bucket")["RecordsObjects"]["Resource"] == ["arn:aws:s3:::bucket/*"]
    assert "Condition" not in statements("s3://bucket")["RecordsList"]


def test_data_is_read_and_never_written():
    found = statements("s3://bucket", "s3://texts/english.txt")
    assert found["DataObjects"]["Action"] == ["s3:GetObject"]
    assert found["DataObjects"]["Resource"] == ["arn:aws:s3:::texts/english.txt/*", "arn:aws:s3:::texts/english.txt"]
    assert "DataObjects" not in statements("s3://bucket")


@pytest.mark.parametrize("name", ["dev", "own-bucket"])
def test_nothing_is_deleted_and_no_star_stands_alone(name):
    text = registered(name).one("RolePolicy").inputs["policy"]
    assert "Delete" not in text
    assert all("*" not in s["Resource"] and "s3:*" not in s["Action"] for s in json.loads(text)["Statement"])


def test_the_pods_service_account_takes_the_role_before_the_job_starts():
    graph = registered("dev")
    association = graph.one("PodIdentityAssociation", "trainer")
    runtime = graph.one("ClusterTrainingRuntime").inputs["spec"]["template"]["spec"]["replicatedJobs"][0]
    pod = runtime["template"]["spec"]["template"]["spec"]
    assert association.inputs["serviceAccount"] == pod["serviceAccountName"]
    assert association.inputs["serviceAccount"] == graph.one("ServiceAccount").inputs["metadata"]["name"]
    assert association.inputs["namespace"] == graph.one("Namespace").inputs["metadata"]["name"]
    assert graph.outlives(association, graph.one("TrainJob"))
