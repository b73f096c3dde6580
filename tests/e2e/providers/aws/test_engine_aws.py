"""pulumi-aws and pulumi-eks as the engine sees them: a small program, and the program's own AWS half."""

import json
import re
from collections import Counter

import pytest

from tests.e2e import operations
from tests.e2e.engine.events import name_of
from tests.e2e.engine.workspace import Workspace
from tests.e2e.faults import Fault
from tests.e2e.providers.aws.aws_half import aws_half
from tests.e2e.providers.aws.sample import write_sample

pytestmark = pytest.mark.e2e

MADE = ["attached", "internet", "out", "profile", "queue", "role", "subnet", "table", "vpc"]
CREATIONS = (
    "CreateVpc|CreateInternetGateway|AttachInternetGateway|CreateSubnet|CreateRole|AttachRolePolicy|"
    "CreateInstanceProfile|AddRoleToInstanceProfile|CreateQueue|CreateRouteTable|CreateRoute"
)
TOKEN = "a-token-that-must-never-be-seen"


@pytest.fixture(name="sample")
def _sample(grounds, installation, tmp_path):
    workspace = Workspace(
        installation, tmp_path / "workspace", site=grounds.site, project=write_sample(tmp_path / "project")
    )
    workspace.init("dev")
    yield workspace
    workspace.reap()


def names(urns):
    return sorted(name_of(urn) for urn in urns)


def made_of(outcome):
    return sorted(set(names(outcome.changes.created)) & set(MADE))


def counted(inventory):
    return {kind: len(found) for kind, found in inventory.items()}


def positions(grounds, *verbs):
    log = operations.read(grounds.site.operations)
    return [operations.position(log, who="aws", verb=verb) for verb in verbs]


def test_a_preview_makes_nothing_and_a_second_up_changes_nothing(sample, grounds):
    planned = sample.preview("dev").must_succeed()
    assert made_of(planned) == MADE
    assert grounds.inventory() == {}
    assert made_of(sample.up("dev", "--skip-preview").must_succeed()) == MADE
    assert sample.outputs("dev")["vpc"] in grounds.inventory()["ec2:vpc"]
    again = sample.up("dev").must_succeed()
    assert again.changes.is_none
    assert sample.refresh("dev").must_succeed().changes.is_none
    assert names(sample.destroy("dev").must_succeed().changes.deleted)[-1:] == ["vpc"]
    assert grounds.inventory() == {}


def test_a_tag_changes_in_place_and_a_default_tag_everywhere(sample, grounds):
    sample.up("dev", "--skip-preview").must_succeed()
    sample.set("dev", "name", "second")
    changed = sample.up("dev", "--skip-preview").must_succeed()
    assert names(changed.changes.updated) == ["vpc"]
    sample.set("dev", "owner", "you")
    everywhere = sample.up("dev", "--skip-preview").must_succeed()
    assert names(everywhere.changes.updated) == [
        "aws", "internet", "profile", "queue", "role", "subnet", "table", "vpc",
    ]  # fmt: skip
    (vpc,) = grounds.client("ec2").describe_vpcs(VpcIds=[sample.outputs("dev")["vpc"]])["Vpcs"]
    tags = {tag["Key"]: tag["Value"] for tag in vpc["Tags"]}
    assert tags == {"Name": "second", "owner": "you", "stack": "dev"}


def test_another_range_of_addresses_replaces_the_subnet_alone_or_all_that_stands_in_it(sample, grounds):
    sample.up("dev", "--skip-preview").must_succeed()
    vpc = sample.outputs("dev")["vpc"]
    sample.set("dev", "subnet", "7")
    moved = sample.up("dev", "--skip-preview").must_succeed()
    assert names(moved.changes.replaced) == ["subnet"]
    created, deleted = positions(grounds, "CreateSubnet", "DeleteSubnet")
    assert created < deleted, "the new one is there before the old one goes"
    sample.set("dev", "network", "10.9")
    elsewhere = sample.up("dev", "--skip-preview").must_succeed()
    assert {"vpc", "subnet", "table", "out"} <= set(names(elsewhere.changes.replaced))
    assert sample.outputs("dev")["vpc"] != vpc
    assert counted(grounds.inventory())["ec2:vpc"] == 1


def test_what_somebody_did_by_hand_is_seen_by_refresh_and_put_right_by_up(sample, grounds):
    sample.up("dev", "--skip-preview").must_succeed()
    ec2 = grounds.client("ec2")
    (subnet,) = grounds.inventory()["ec2:subnet"]
    ec2.delete_tags(Resources=[subnet], Tags=[{"Key": "stack"}])
    seen = sample.refresh("dev").must_succeed()
    assert names(seen.changes.updated) == ["subnet"]
    assert names(sample.up("dev", "--skip-preview").must_succeed().changes.updated) == ["subnet"]
    ec2.delete_subnet(SubnetId=subnet)
    assert names(sample.refresh("dev").must_succeed().changes.deleted) == ["subnet"]
    assert names(sample.up("dev", "--skip-preview").must_succeed().changes.created) == ["subnet"]
    assert counted(grounds.inventory())["ec2:subnet"] == 1
    assert sample.up("dev").must_succeed().changes.is_none


def fails_and_finishes(sample, grounds, whole, nth):
    grounds.refuse(Fault(who="aws", match=f"^({CREATIONS}) ", nth=nth, error="UnauthorizedOperation"))
    failed = sample.up("dev", "--skip-preview", "--parallel", "1")
    assert failed.returncode != 0, nth
    assert any("api error UnauthorizedOperation" in error for error in failed.errors), failed.errors
    finished = sample.up("dev", "--skip-preview").must_succeed()
    assert not finished.changes.is_none
    assert counted(grounds.inventory()) == whole, nth
    sample.destroy("dev", "--skip-preview").must_succeed()
    assert grounds.inventory() == {}


def inventory_of_a_good_run(sample, grounds):
    sample.up("dev", "--skip-preview").must_succeed()
    whole = counted(grounds.inventory())
    sample.destroy("dev", "--skip-preview").must_succeed()
    return whole


def test_after_a_failure_halfway_through_an_object_the_next_up_finishes_without_a_twin(sample, grounds):
    whole = inventory_of_a_good_run(sample, grounds)
    grounds.refuse(Fault(who="aws", match="^AttachInternetGateway ", error="UnauthorizedOperation"))
    assert sample.up("dev", "--skip-preview").returncode != 0
    assert sample.up("dev", "--skip-preview").must_succeed().changes.failed == ()
    assert counted(grounds.inventory()) == whole
    assert sample.up("dev", "--skip-preview").must_succeed().changes.is_none


@pytest.mark.soak
def test_after_a_failure_at_any_call_the_next_up_finishes_without_a_twin(sample, grounds):
    whole = inventory_of_a_good_run(sample, grounds)
    for nth in range(1, len(CREATIONS.split("|")) + 1):
        fails_and_finishes(sample, grounds, whole, nth)


def test_an_interface_that_was_left_behind_stops_the_destroy_with_a_sentence(sample, grounds):
    sample.up("dev", "--skip-preview").must_succeed()
    (subnet,) = grounds.inventory()["ec2:subnet"]
    ec2 = grounds.client("ec2")
    left = ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"]
    stopped = sample.destroy("dev")
    assert stopped.returncode != 0
    assert any("DeleteSubnet, api error DependencyViolation" in error for error in stopped.errors), stopped.errors
    assert "ec2:vpc" in grounds.inventory()
    ec2.delete_network_interface(NetworkInterfaceId=left)
    sample.destroy("dev").must_succeed()
    assert grounds.inventory() == {}


def test_the_wrong_account_is_refused_before_anything_is_made(sample, grounds):
    sample.set("dev", "account", "000000000000")
    refused = sample.up("dev")
    assert refused.returncode != 0
    assert any("AWS account ID not allowed: 123456789012" in error for error in refused.errors), refused.errors
    assert grounds.inventory() == {}


def test_what_comes_in_secret_stays_secret_in_the_state(sample, grounds):
    sample.set_secret("dev", "token", TOKEN)
    outcome = sample.up("dev").must_succeed()
    refreshed = sample.refresh("dev").must_succeed()
    (subnet,) = grounds.client("ec2").describe_subnets(SubnetIds=grounds.inventory()["ec2:subnet"])["Subnets"]
    assert {"Key": "token", "Value": TOKEN} in subnet["Tags"], "AWS gets the value itself"
    assert TOKEN not in outcome.output + refreshed.output
    told = [path for path in sample.folder.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert told == []
    assert TOKEN not in json.dumps(sample.export("dev"))


def test_what_the_cluster_component_refuses_is_a_sentence_that_names_the_argument(sample, grounds):
    (sample.project / "__main__.py").write_text(
        "import pulumi_eks as eks\n"
        "eks.Cluster('eks', authentication_mode='API', vpc_id='vpc-1', proxy='http://proxy')\n"
    )
    refused = sample.preview("dev")
    assert refused.returncode != 0
    assert any("the stand-in of eks takes no argument 'proxy'; it takes" in error for error in refused.errors)
    assert grounds.inventory() == {}


@pytest.fixture(name="half")
def _half(grounds, installation, tmp_path):
    workspace = Workspace(
        installation, tmp_path / "workspace", site=grounds.site, project=aws_half(tmp_path / "project")
    )
    yield workspace
    workspace.reap()


# The main line does the same with the whole program on every run.
@pytest.mark.soak
@pytest.mark.parametrize("stack", ["dev", "g6e12xl-4x4-efa1-pg"])
def test_the_programs_aws_half_goes_up_stays_and_goes_down_in_order(half, grounds, stack):
    half.init(stack)
    planned = half.preview(stack).must_succeed()
    assert grounds.inventory() == {}
    up = half.up(stack, "--skip-preview").must_succeed()
    assert Counter(names(up.changes.created)) == Counter(names(planned.changes.created))
    inventory = grounds.inventory()
    assert {"eks:cluster", "eks:nodegroup", "eks:addon", "iam:instance-profile", "sqs:queue"} <= set(inventory)
    assert ("ec2:placement-group" in inventory) == stack.endswith("-pg")
    assert sorted(name.split("/")[1] for name in inventory["eks:addon"]) == [
        "coredns", "eks-pod-identity-agent", "kube-proxy", "vpc-cni",
    ]  # fmt: skip
    again = half.up(stack).must_succeed()
    assert again.changes.is_none
    seen = half.refresh(stack).must_succeed()
    assert seen.changes.is_none
    gone = half.destroy(stack).must_succeed()
    assert set(grounds.inventory()) == {"s3:bucket"}, "the records are kept"
    order = positions(grounds, "DeleteNodegroup", "DeleteCluster", "DeleteNatGateway", "DeleteVpc")
    assert order == sorted(order)
    associations, cluster = positions(grounds, "DeletePodIdentityAssociation", "DeleteCluster")
    assert associations < cluster
    deleted = [one for one in operations.read(grounds.site.operations) if one.verb == "DeleteCluster"]
    assert [one.outcome for one in deleted] == ["ok"]
    for name, outcome in {"preview": planned, "up": up, "no change": again, "destroy": gone}.items():
        print(f"{stack} {name}: {outcome.seconds:.1f} s, {outcome.peak_mib:.0f} MiB")


def test_a_kubeconfig_is_an_output_that_the_state_encrypts(half):
    half.init("dev")
    half.up("dev", "--skip-preview").must_succeed()
    assert half.outputs("dev")["kubeconfig"] == "[secret]"
    shown = half.pulumi("stack", "output", "--stack", "dev", "--show-secrets", "kubeconfig")
    kubeconfig = json.loads(shown.output)
    assert "certificate-authority-data" in kubeconfig["clusters"][0]["cluster"]
    token = kubeconfig["users"][0]["user"]["token"]
    assert token not in json.dumps(half.export("dev"))
    (component,) = [one for one in half.resources("dev") if one["type"] == "eks:index:Cluster"]
    assert re.fullmatch(r"sg-[0-9a-f]{17}", component["outputs"]["clusterSecurityGroupId"])
    half.destroy("dev").must_succeed()


def test_a_guarded_stack_on_spot_misses_the_role_then_goes_up_lets_its_admin_in_and_goes_down(half, grounds):
    iam, eks = grounds.client("iam"), grounds.client("eks")
    all_of_it = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    to_ec2 = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    allowed, trust = (json.dumps({"Version": "2012-10-17", "Statement": [one]}) for one in (all_of_it, to_ec2))
    boundary = iam.create_policy(PolicyName="Boundary", PolicyDocument=allowed)["Policy"]["Arn"]
    admin = iam.create_role(RoleName="Lab", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    half.init("dev")
    half.set("dev", "topolab:platform.capacity.mode", "spot")
    half.set("dev", "topolab:platform.admins[0]", admin)
    half.set("dev", "topolab:platform.permissionsBoundary", boundary)
    half.set("dev", "topolab:platform.apiEndpoint", "private")
    refused = half.up("dev", "--skip-preview")
    assert any("create-service-linked-role" in error for error in refused.errors), refused.errors
    assert "ec2:vpc" not in grounds.inventory()
    iam.create_service_linked_role(AWSServiceName="spot.amazonaws.com")
    half.up("dev", "--skip-preview").must_succeed()
    ours = [name for name in grounds.inventory()["iam:role"] if name.startswith("topolab-dev-")]
    assert len(ours) == 5
    bounds = [iam.get_role(RoleName=name)["Role"]["PermissionsBoundary"]["PermissionsBoundaryArn"] for name in ours]
    assert set(bounds) == {boundary}
    assert admin in eks.list_access_entries(clusterName="topolab-dev")["accessEntries"]
    assert eks.describe_cluster(name="topolab-dev")["cluster"]["resourcesVpcConfig"]["endpointPublicAccess"] is False
    assert half.up("dev", "--skip-preview").must_succeed().changes.is_none
    half.destroy("dev", "--skip-preview").must_succeed()
    assert set(grounds.inventory()) == {"s3:bucket", "iam:policy", "iam:role"}, "records, boundary and the admin's role"
