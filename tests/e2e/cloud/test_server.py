"""The account's front: log, faults, signatures, and what it doesn't know."""

import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from tests.e2e.children import wait_until
from tests.e2e.cloud.inventory import inventory
from tests.e2e.cloud.start import reset_cloud
from tests.e2e.faults import Fault, faults_met, plan_faults
from tests.e2e.operations import read
from tests.source import ROOT
from workloads.catalogue.versions import KUBERNETES

pytestmark = pytest.mark.e2e


def test_changes_are_logged_by_the_id_that_was_made_and_the_name_that_was_asked(client, cloud_folder):
    tags = [{"ResourceType": "vpc", "Tags": [{"Key": "Name", "Value": "lab-vpc"}]}]
    vpc = client("ec2").create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=tags)["Vpc"]["VpcId"]
    client("ec2").describe_vpcs()
    (made,) = read(cloud_folder / "operations.jsonl")
    assert (made.who, made.verb, made.subject, made.outcome) == ("aws", "CreateVpc", vpc, "ok")
    assert made.details == {"name": "lab-vpc"}


def test_refusals_are_logged_by_their_code(client, log, refused):
    refused(client("iam").delete_role, RoleName="nobody")
    refused(client("eks").delete_cluster, name="lab")
    refused(client("fsx").delete_file_system, FileSystemId="fs-12345678")
    refused(client("s3").delete_bucket, Bucket="nobody")
    refused(client("sqs").delete_queue, QueueUrl="http://127.0.0.1/123456789012/nobody")
    assert log() == [
        ("DeleteRole", "nobody", "NoSuchEntity"),
        ("DeleteCluster", "lab", "ResourceNotFoundException"),
        ("DeleteFileSystem", "fs-12345678", "FileSystemNotFound"),
        ("DeleteBucket", "nobody", "NoSuchBucket"),
        ("DeleteQueue", "http://127.0.0.1/123456789012/nobody", "AWS.SimpleQueueService.NonExistentQueue"),
    ]


def test_no_body_is_logged(client, cloud_folder):
    client("s3").create_bucket(Bucket="records")
    client("s3").put_object(Bucket="records", Key="a", Body=b"hf_secret")
    client("ssm").put_parameter(Name="token", Value="hf_secret", Type="SecureString")
    assert "hf_secret" not in (cloud_folder / "operations.jsonl").read_text()


def test_the_second_creation_fails_as_asked_and_then_no_more(client, cloud_folder, cloud, refused):
    plan_faults(cloud_folder / "faults.json", [Fault(who="aws", match="^CreateVpc", nth=2, error="VpcLimitExceeded")])
    ec2 = client("ec2")
    ec2.create_vpc(CidrBlock="10.0.0.0/16")
    assert refused(ec2.create_vpc, CidrBlock="10.1.0.0/16") == "VpcLimitExceeded"
    ec2.create_vpc(CidrBlock="10.2.0.0/16")
    assert len(inventory(cloud)["ec2:vpc"]) == 2
    assert [one.outcome for one in read(cloud_folder / "operations.jsonl")] == ["ok", "VpcLimitExceeded", "ok"]


@pytest.mark.parametrize(
    ("code", "status"),
    [("Throttling", 400), ("RequestLimitExceeded", 503), ("InternalError", 500), ("InsufficientInstanceCapacity", 500)],
)
@pytest.mark.parametrize(
    ("service", "action", "arguments"),
    [
        ("ec2", "create_vpc", {"CidrBlock": "10.0.0.0/16"}),
        ("iam", "delete_role", {"RoleName": "a"}),
        ("eks", "delete_cluster", {"name": "a"}),
        ("sqs", "create_queue", {"QueueName": "a"}),
        ("s3", "create_bucket", {"Bucket": "records"}),
        ("fsx", "delete_file_system", {"FileSystemId": "fs-12345678"}),
    ],
)
def test_a_fault_speaks_the_protocol_of_its_service(client, cloud_folder, service, action, arguments, code, status):
    plan_faults(cloud_folder / "faults.json", [Fault(who="aws", match=".", times=None, error=code)])
    with pytest.raises(ClientError) as caught:
        getattr(client(service), action)(**arguments)
    assert caught.value.response["Error"]["Code"] == code
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


def test_a_fault_names_its_subject(client, cloud_folder, refused):
    plan_faults(cloud_folder / "faults.json", [Fault(who="aws", match="^DeleteRole b$", error="Throttling")])
    assert refused(client("iam").delete_role, RoleName="a") == "NoSuchEntity"
    assert refused(client("iam").delete_role, RoleName="b") == "Throttling"


def test_a_slow_creation_is_logged_with_its_delay_and_lets_others_pass(client, cloud_folder):
    plan_faults(cloud_folder / "faults.json", [Fault(who="aws", match="^CreateVpc", delay_s=0.5)])
    ec2, others = client("ec2"), client("sqs")
    slow = threading.Thread(target=lambda: ec2.create_vpc(CidrBlock="10.0.0.0/16"))
    slow.start()
    wait_until(lambda: faults_met(cloud_folder / "faults.json") == 1, 5, "the fault is met")
    others.create_queue(QueueName="a")
    slow.join()
    quick, delayed = read(cloud_folder / "operations.jsonl")
    assert (quick.verb, dict(quick.details).get("delayed_s")) == ("CreateQueue", None)
    assert delayed.verb == "CreateVpc"
    assert delayed.details["delayed_s"] >= 0.5


def test_the_faults_that_were_met_are_counted(client, cloud_folder, refused):
    faults = cloud_folder / "faults.json"
    plan_faults(faults, [Fault(who="aws", match="^DeleteRole", nth=2, error="Throttling")])
    assert faults_met(faults) == 0
    for code, met in (("NoSuchEntity", 0), ("Throttling", 1), ("NoSuchEntity", 1)):
        assert refused(client("iam").delete_role, RoleName="a") == code
        assert faults_met(faults) == met


@pytest.mark.parametrize("service", ["ec2", "iam", "eks", "sqs"])
def test_another_region_is_refused_by_a_sentence(client, service):
    actions = {"ec2": "describe_vpcs", "iam": "list_roles", "eks": "list_clusters", "sqs": "list_queues"}
    elsewhere = client(service, "us-west-2")
    if service == "iam":  # IAM has no region: every SDK signs for us-east-1
        assert elsewhere.list_roles()["Roles"] == []
        return
    with pytest.raises(ClientError, match=r"this account has us-east-1 alone.*signed for us-west-2"):
        getattr(elsewhere, actions[service])()


def test_an_unsigned_request_is_refused(cloud):
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{cloud}/?Action=GetCallerIdentity&Version=2011-06-15", timeout=10)
    assert caught.value.code == 403
    caught.value.close()


@pytest.mark.parametrize(
    ("service", "action", "arguments", "named"),
    [
        ("eks", "list_insights", {"clusterName": "a"}, "eks:ListInsights"),
        ("ec2", "describe_ipam_pools", {}, "ec2:DescribeIpamPools"),
        ("iam", "generate_service_last_accessed_details", {"Arn": "a" * 20}, "iam:GenerateServiceLastAccessedDetails"),
        ("kafka", "list_clusters", {}, "kafka"),
    ],
)
def test_what_nobody_knows_is_named(client, service, action, arguments, named):
    with pytest.raises(ClientError, match=rf"NotImplemented.*{named}") as caught:
        getattr(client(service), action)(**arguments)
    assert "tests.e2e.cloud" in str(caught.value)


def test_a_fresh_account_remembers_nothing(client, cloud):
    client("ec2").create_vpc(CidrBlock="10.0.0.0/16")
    client("iam").create_instance_profile(InstanceProfileName="a")
    client("s3").create_bucket(Bucket="records")
    client("sqs").create_queue(QueueName="q")
    client("ec2").create_placement_group(GroupName="pg")
    assert len(inventory(cloud)) == 5
    reset_cloud(cloud)
    assert inventory(cloud) == {}


def test_the_tagging_api_lists_what_aws_lists_there(ground, client, cloud):
    tags = {"topolab:stack": "dev"}
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    ground.iam.tag_role(RoleName="node", Tags=listed)
    ground.ec2.create_tags(Resources=[ground.vpc], Tags=listed)
    ground.eks.create_cluster(**ground.cluster(tags=tags))
    queue = client("sqs").create_queue(QueueName="q", tags=tags)["QueueUrl"]
    found = client("resourcegroupstaggingapi").get_resources(TagFilters=[{"Key": "topolab:stack", "Values": ["dev"]}])

    # Roles aren't among them, whatever their tags.
    assert sorted(one["ResourceARN"] for one in found["ResourceTagMappingList"]) == [
        f"arn:aws:ec2:us-east-1:123456789012:vpc/{ground.vpc}",
        "arn:aws:eks:us-east-1:123456789012:cluster/lab",
        f"arn:aws:sqs:us-east-1:123456789012:{queue.rpartition('/')[2]}",
    ]
    only = client("resourcegroupstaggingapi").get_resources(ResourceTypeFilters=["eks"])["ResourceTagMappingList"]
    assert [one["ResourceARN"].split(":")[2] for one in only] == ["eks"]
    assert "iam:role" in inventory(cloud)


def test_what_aws_publishes(client, refused):
    name = f"/aws/service/eks/optimized-ami/{KUBERNETES}/amazon-linux-2023/x86_64/nvidia/recommended/image_id"
    image = client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
    (found,) = client("ec2").describe_images(ImageIds=[image])["Images"]
    assert (found["Architecture"], "nvidia" in found["Name"]) == ("x86_64", True)
    assert refused(client("ssm").get_parameter, Name=name.replace("nvidia", "nosuch")) == "ParameterNotFound"

    quota = client("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode="L-417A185B")["Quota"]
    assert quota["Value"] > 0
    unknown = {"ServiceCode": "ec2", "QuotaCode": "L-0"}
    assert refused(client("service-quotas").get_service_quota, **unknown) == "NoSuchResourceException"

    filters = [{"Type": "TERM_MATCH", "Field": "tenancy", "Value": "Shared"}]
    prices = client("pricing").get_products(ServiceCode="AmazonEC2", Filters=filters)["PriceList"]
    assert any("p4d.24xlarge" in one for one in prices)
    types = client("ec2").describe_instance_types()["InstanceTypes"]
    assert {one["InstanceType"].partition(".")[0] for one in types} == {"g6e", "p4d", "p5", "p5en", "m5", "m7i", "c7i"}


def test_a_person_starts_it_on_a_free_port_and_ends_it_without_a_trace(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.e2e.cloud"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        told = running.stdout.readline()
        match = re.fullmatch(r"export AWS_ENDPOINT_URL=(http://127\.0\.0\.1:\d+)  # operations in (.+)\n", told)
        assert match is not None, told
        assert Path(match[2]).is_relative_to(tmp_path)
        assert inventory(match[1]) == {}
        running.send_signal(signal.SIGTERM)
        assert running.wait(20) == 0
    assert list(tmp_path.iterdir()) == []
