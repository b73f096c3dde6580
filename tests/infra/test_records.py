"""RULEs of the records bucket."""

import json

from tests.pulumi_engine import registered


def test_the_bucket_is_closed_to_the_public(dev):
    closed = dev.one("BucketPublicAccessBlock").inputs
    assert [
        closed[k] for k in ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    ] == [True] * 4


def test_it_is_encrypted_versioned_and_rid_of_leftovers_but_never_of_records(dev):
    rule = dev.one("BucketServerSideEncryptionConfiguration").inputs["rules"][0]
    assert rule["applyServerSideEncryptionByDefault"] == {"sseAlgorithm": "AES256"}
    assert dev.one("BucketVersioning").inputs["versioningConfiguration"] == {"status": "Enabled"}
    (lifecycle,) = dev.one("BucketLifecycleConfiguration").inputs["rules"]
    assert lifecycle["abortIncompleteMultipartUpload"] == {"daysAfterInitiation": 7}
    assert "expiration" not in lifecycle


def test_it_refuses_plain_http(dev):
    (statement,) = json.loads(dev.one("BucketPolicy").inputs["policy"])["Statement"]
    assert (statement["Effect"], statement["Principal"]) == ("Deny", "*")
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert len(statement["Resource"]) == 2


def test_its_name_is_left_to_end_in_chance_so_that_a_kept_one_blocks_nobody(dev):
    bucket = dev.one("Bucket").inputs
    assert bucket["bucketPrefix"] == "topolab-dev-"
    assert "bucket" not in bucket
    assert "forceDestroy" not in bucket or bucket["forceDestroy"] is False


def test_the_trainer_publishes_there(dev):
    env = dev.one("TrainJob").inputs["spec"]["trainer"]["env"]
    assert {"name": "TOPOLAB_RECORDS", "value": dev.outputs["records"]} in env


def test_an_own_bucket_is_used_as_it_is_and_none_is_made():
    graph = registered("own-bucket")
    assert graph.of("Bucket") == []
    assert graph.outputs["records"] == "s3://a-bucket/of/mine"
