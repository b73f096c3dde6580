"""Identity, region, zone, and what bears the stack's name already."""

from collections.abc import Iterator

from botocore.exceptions import ClientError

from workloads.catalogue.zones import CONTROL_PLANE_EXCLUDED_ZONE_IDS
from workloads.operations.leftovers import karpenters
from workloads.operations.leftovers.aws import Aws, tags_of
from workloads.operations.preflight.judgements import account as judge
from workloads.operations.preflight.questions.asked import Asked
from workloads.operations.preflight.rows import Row
from workloads.operations.preflight.subject import Subject


def identity(aws: Aws, subject: Subject) -> tuple[str, Row]:
    """The caller's ARN and its row; botocore's errors are the caller's business."""
    caller = aws.client("sts").get_caller_identity()
    return caller["Arn"], judge.identity(caller["Account"], caller["Arn"], subject.platform.allowed_accounts)


def region(asked: Asked) -> Iterator[Row]:
    """Whether the account uses the region."""
    name = asked.subject.owner.region
    filters = [{"Name": "region-name", "Values": [name]}]
    found = asked.aws.client("ec2").describe_regions(AllRegions=True, Filters=filters)["Regions"]
    yield judge.region(name, next((one["OptInStatus"] for one in found if one["RegionName"] == name), None))


def zone(asked: Asked) -> Iterator[Row]:
    """Whether the zone has the type, and EKS."""
    subject, ec2 = asked.subject, asked.aws.client("ec2")
    zones = {
        one["ZoneName"]: (one["ZoneId"], one["State"])
        for one in ec2.describe_availability_zones(AllAvailabilityZones=True)["AvailabilityZones"]
        if one.get("OptInStatus") != "not-opted-in"
    }
    offered = sorted(zones_offering(asked.aws, [subject.instance_type.name]).get(subject.instance_type.name, ()))
    yield judge.zone(subject.zone, zones, offered, subject.instance_type.name, CONTROL_PLANE_EXCLUDED_ZONE_IDS)


def zones_offering(aws: Aws, types: list[str]) -> dict[str, set[str]]:
    """Zones of the region by instance type."""
    found: dict[str, set[str]] = {}
    arguments = {"LocationType": "availability-zone", "Filters": [{"Name": "instance-type", "Values": types}]}
    for one in aws.pages("ec2", "describe_instance_type_offerings", "InstanceTypeOfferings", arguments):
        found.setdefault(one["InstanceType"], set()).add(one["Location"])
    return found


def name(asked: Asked) -> Iterator[Row]:
    """Whether somebody else's cluster has the stack's name."""
    cluster = karpenters.cluster(asked.aws, asked.subject.owner)
    yield judge.name(asked.subject.owner, None if cluster is None else tags_of(cluster))


def records(asked: Asked) -> Iterator[Row]:
    """Whether the records bucket is this account's."""
    uri = asked.subject.platform.records
    if not uri.startswith("s3://"):
        yield judge.managed_records()
        return
    bucket = uri.removeprefix("s3://").split("/", 1)[0]
    account = asked.arn.split(":")[4] if asked.arn else None
    owner = {} if account is None else {"ExpectedBucketOwner": account}
    try:
        answer = asked.aws.client("s3").head_bucket(Bucket=bucket, **owner)
    except ClientError as error:
        status, region_of_bucket = error.response["ResponseMetadata"]["HTTPStatusCode"], None
        if status not in (403, 404):
            raise
    else:
        status, region_of_bucket = 200, answer.get("BucketRegion")
    yield judge.records(bucket, status, region_of_bucket, asked.subject.owner.region)
