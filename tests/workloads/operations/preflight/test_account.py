"""Identity, region, zone, the stack's name and its records bucket."""

import pytest

from tests.workloads.operations.preflight.asking import ACCOUNT, ARN, OWN, answering, ask, asked, aws, only, subject
from workloads.operations.preflight.judgements.account import identity
from workloads.operations.preflight.questions import account
from workloads.operations.preflight.questions.account import name, records, region, zone


def test_the_caller_is_named_with_the_account():
    row = identity(ACCOUNT, ARN, [ACCOUNT])
    assert (row.colour, row.sentence) == ("green", f"account {ACCOUNT} as user/ada")


def test_the_callers_arn_comes_with_its_row():
    with answering(("sts", "get_caller_identity", {"Account": ACCOUNT, "Arn": ARN})):
        arn, row = account.identity(aws(), subject())
    assert (arn, row.colour) == (ARN, "green")


@pytest.mark.parametrize(
    ("arn", "allowed", "said"),
    [
        (ARN, ["999999999999"], "platform.allowedAccounts names 999999999999"),
        (f"arn:aws-cn:iam::{ACCOUNT}:user/ada", [], "partition 'aws-cn'"),
    ],
)
def test_another_account_or_partition_is_red(arn, allowed, said):
    row = identity(ACCOUNT, arn, allowed)
    assert row.colour == "red"
    assert said in row.sentence


def regions(status):
    return [("ec2", "describe_regions", {"Regions": [{"RegionName": "us-east-1", "OptInStatus": status}]})]


def test_a_region_is_green_where_the_account_uses_it():
    assert only(ask(region, regions("opt-in-not-required"))).colour == "green"


def test_a_region_that_nobody_enabled_or_that_isnt_there_is_red():
    row = only(ask(region, regions("not-opted-in")))
    assert (row.colour, "aws account enable-region --region-name us-east-1" in row.remedy) == ("red", True)
    assert only(ask(region, [("ec2", "describe_regions", {"Regions": []})])).colour == "red"


def zones(*offered, status="opt-in-not-required", state="available", zone_id="use1-az1"):
    listed = {"ZoneName": "us-east-1b", "ZoneId": zone_id, "State": state, "OptInStatus": status}
    other = {"ZoneName": "us-east-1c", "ZoneId": "use1-az2", "State": "available", "OptInStatus": "opted-in"}
    offers = [{"InstanceType": "g6e.8xlarge", "Location": one} for one in offered]
    return [
        ("ec2", "describe_availability_zones", {"AvailabilityZones": [listed, other]}),
        ("ec2", "describe_instance_type_offerings", {"InstanceTypeOfferings": offers}),
    ]


def test_a_zone_that_offers_the_type_is_green():
    row = only(ask(zone, zones("us-east-1b")))
    assert (row.colour, row.sentence) == ("green", "us-east-1b (use1-az1) offers g6e.8xlarge")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (zones("us-east-1c"), "EC2 offers no g6e.8xlarge in us-east-1b"),
        (zones("us-east-1b", "us-east-1c", zone_id="use1-az3"), "EKS has no control plane in us-east-1b (use1-az3)"),
        (zones("us-east-1b", "us-east-1c", state="impaired"), "us-east-1b is impaired"),
        (zones("us-east-1c", status="not-opted-in"), "this account sees no zone us-east-1b"),
    ],
)
def test_a_zone_that_cant_hold_the_nodes_is_red_and_another_is_named(answers, said):
    row = only(ask(zone, answers))
    assert (row.colour, row.sentence) == ("red", said)
    assert "us-east-1c" in row.remedy


def test_where_no_zone_has_the_type_another_region_is_the_remedy():
    assert only(ask(zone, zones())).remedy == "take another region"


def cluster(tags):
    return [("eks", "describe_cluster", {"cluster": {"name": "topolab-dev", "tags": tags}})]


def test_the_stacks_name_is_green_where_it_is_free_or_its_own():
    assert only(ask(name, [("eks", "describe_cluster", "ResourceNotFoundException")])).colour == "green"
    own = {one["Key"]: one["Value"] for one in OWN}
    assert "this stack's own" in only(ask(name, cluster(own))).sentence


@pytest.mark.parametrize(
    ("tags", "whose"),
    [
        ({"topolab:project": "theirs", "topolab:stack": "dev"}, "belongs to another stack"),
        ({}, "isn't topolab's"),
    ],
)
def test_a_cluster_of_that_name_that_isnt_ours_is_red(tags, whose):
    row = only(ask(name, cluster(tags)))
    assert (row.colour, whose in row.sentence) == ("red", True)


def bucket(answer):
    return [("s3", "head_bucket", answer)]


OWN_BUCKET = {"records": "s3://ours/runs"}


def test_a_records_bucket_of_the_account_is_green_and_so_is_a_managed_one():
    assert only(ask(records, bucket({"BucketRegion": "us-east-1"}), subject(**OWN_BUCKET))).colour == "green"
    assert only(ask(records, [])).sentence == "the stack makes its own"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("404", "there is no bucket ours"),
        ("403", "bucket ours is another account's"),
        ({"BucketRegion": "eu-west-1"}, "bucket ours is in eu-west-1"),
    ],
)
def test_a_records_bucket_that_isnt_there_or_somebody_elses_or_far_is_red(answer, said):
    row = only(ask(records, bucket(answer), subject(**OWN_BUCKET)))
    assert row.colour == "red"
    assert said in row.sentence


@pytest.mark.parametrize(
    ("question", "service", "operation", "one"),
    [
        (region, "ec2", "describe_regions", None),
        (zone, "ec2", "describe_availability_zones", None),
        (name, "eks", "describe_cluster", None),
        (records, "s3", "head_bucket", OWN_BUCKET),
    ],
)
def test_what_these_credentials_may_not_ask_is_grey(question, service, operation, one):
    # S3 gives no code for a bucket that may not be listed: that is a red row of its own, above.
    code = "AccessDenied" if service != "s3" else "SlowDown"
    row = only(ask(question, [(service, operation, code)], subject(**(one or {}))))
    assert row.colour == "grey"


def test_without_an_identity_the_bucket_is_asked_without_its_owner():
    with answering(("s3", "head_bucket", {"BucketRegion": "us-east-1"})):
        assert only(list(records(asked(subject(**OWN_BUCKET), arn=None)))).colour == "green"
