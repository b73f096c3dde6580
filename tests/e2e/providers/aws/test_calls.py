"""Each row of the table against the fake account: made, read back, changed, deleted; and what AWS says no to."""

import json

import pytest

from tests.e2e import operations
from tests.e2e.faults import Fault
from tests.e2e.providers.aws.cloud import Waits
from tests.e2e.providers.aws.stand_in import UNFINISHED
from tests.e2e.providers.aws.table import KINDS
from tests.e2e.providers.serving import Found, InitFailedError, RefusedError, Resource
from tests.e2e.site import ACCOUNT
from workloads.catalogue.versions import KUBERNETES

pytestmark = pytest.mark.e2e

TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": ["eks.amazonaws.com", "ec2.amazonaws.com", "pods.eks.amazonaws.com"]},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
        }
    ],
}
MAY_READ = {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::a/*"]}
NOBODY = {"Effect": "Deny", "Principal": "*", "Action": "sqs:*", "Resource": "*"}


def policy(**statement):
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


class Stack:
    """What the engine would keep: the provider's answers by name."""

    def __init__(self, aws):
        self.aws, self.made = aws, {}

    def resource(self, short, name):
        (type_,) = [type_ for type_ in KINDS if type_.rpartition(":")[2] == short]
        return Resource(urn=f"urn:pulumi:test::topolab::{type_}::{name}", type=type_, name=name)

    def up(self, short, name, /, **inputs):
        """Check, then create, or update what is there; its state."""
        resource = self.resource(short, name)
        old = self.made.get((short, name))
        checked = self.aws.check(resource, dict(old.inputs) if old else {}, inputs, name.encode())
        assert not checked.failures
        given = dict(checked.inputs)
        if old is None:
            identifier, outputs = self.aws.create(resource, given, timeout_s=0)
        else:
            assert not self.aws.diff(resource, old, given).replaces
            identifier, outputs = old.identifier, self.aws.update(resource, old, given, timeout_s=0)
        state = self.made[short, name] = Found(identifier=identifier, inputs=given, outputs=outputs)
        return state

    def read(self, short, name):
        old = self.made[short, name]
        return self.aws.read(self.resource(short, name), old.identifier, dict(old.inputs), dict(old.outputs))

    def drift(self, short, name):
        """What the next up would put right after a refresh; None when the object is gone."""
        found = self.read(short, name)
        if found is None:
            return None
        return sorted(self.aws.diff(self.resource(short, name), found, dict(self.made[short, name].inputs)).paths)

    def down(self, short, name, timeout_s=0):
        self.aws.delete(self.resource(short, name), self.made[short, name], timeout_s=timeout_s)

    def down_all(self):
        for short, name in reversed(self.made):
            self.down(short, name)


@pytest.fixture(name="stack")
def _stack(aws):
    return Stack(aws)


def network(stack):
    vpc = stack.up("Vpc", "vpc", cidrBlock="10.0.0.0/16", enableDnsHostnames=True, tags={"Name": "v"})
    gateway = stack.up("InternetGateway", "internet", vpcId=vpc.identifier)
    subnets = [
        stack.up("Subnet", zone, vpcId=vpc.identifier, cidrBlock=f"10.0.{index}.0/24", availabilityZone=zone)
        for index, zone in enumerate(("us-east-1a", "us-east-1b"))
    ]
    table = stack.up("RouteTable", "table", vpcId=vpc.identifier)
    stack.up(
        "Route", "out", routeTableId=table.identifier, destinationCidrBlock="0.0.0.0/0", gatewayId=gateway.identifier
    )
    for index, subnet in enumerate(subnets):
        stack.up("RouteTableAssociation", f"a{index}", routeTableId=table.identifier, subnetId=subnet.identifier)
    return vpc, subnets, table


def cluster(stack):
    vpc, subnets, _ = network(stack)
    role = stack.up("Role", "role", assumeRolePolicy=json.dumps(TRUST))
    for managed in ("AmazonEKSClusterPolicy", "AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy",
                   "AmazonEC2ContainerRegistryPullOnly"):  # fmt: skip
        stack.up("RolePolicyAttachment", managed, role=role.identifier, policyArn=f"arn:aws:iam::aws:policy/{managed}")
    made = stack.up(
        "Cluster",
        "eks",
        name="one",
        roleArn=role.outputs["arn"],
        version=KUBERNETES,
        accessConfig={"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True},
        vpcConfig={"subnetIds": [one.identifier for one in subnets], "endpointPublicAccess": True},
    )
    return made, role, subnets, vpc


def assert_all_read_back(stack):
    assert {key: stack.drift(*key) for key in stack.made} == {key: [] for key in stack.made}


def assert_gone(stack, grounds):
    stack.down_all()
    assert grounds.inventory() == {}
    assert {key: stack.read(*key) for key in stack.made} == dict.fromkeys(stack.made)
    stack.down_all()  # what is gone already is fine


def test_a_network_comes_and_goes(stack, grounds):
    vpc, subnets, table = network(stack)
    address = stack.up("Eip", "nat", domain="vpc")
    nat = stack.up("NatGateway", "nat", allocationId=address.identifier, subnetId=subnets[0].identifier)
    endpoint = stack.up(
        "VpcEndpoint", "s3", vpcId=vpc.identifier, serviceName="com.amazonaws.us-east-1.s3",
        routeTableIds=[table.identifier],
    )  # fmt: skip
    stack.up("PlacementGroup", "group", strategy="cluster")
    lustre = {"protocol": "tcp", "fromPort": 988, "toPort": 988, "cidrBlocks": ["10.0.0.0/16"]}
    out = {"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["10.0.0.0/16"]}
    group = stack.up("SecurityGroup", "lustre", vpcId=vpc.identifier, ingress=[lustre], egress=[out])
    assert vpc.outputs["arn"] == f"arn:aws:ec2:us-east-1:{ACCOUNT}:vpc/{vpc.identifier}"
    assert address.outputs["allocationId"] == address.identifier
    assert nat.outputs["publicIp"] == address.outputs["publicIp"]
    assert endpoint.outputs["state"] == "available"
    assert group.outputs["egress"] == [out], "EC2's own rule, anything out, is taken away"
    assert_all_read_back(stack)
    assert_gone(stack, grounds)


def test_a_network_is_changed_in_place(stack, grounds):
    vpc, subnets, table = network(stack)
    vpc = stack.up("Vpc", "vpc", cidrBlock="10.0.0.0/16", enableDnsHostnames=False, tags={"Name": "w"})
    assert vpc.outputs["enableDnsHostnames"] is False
    assert vpc.outputs["tags"]["Name"] == "w"
    stack.up(
        "Subnet", "us-east-1a", vpcId=vpc.identifier, cidrBlock="10.0.0.0/24", availabilityZone="us-east-1a",
        mapPublicIpOnLaunch=True, tags={"a": "b"},
    )  # fmt: skip
    ec2 = grounds.client("ec2")
    (seen,) = ec2.describe_subnets(SubnetIds=[subnets[0].identifier])["Subnets"]
    assert seen["MapPublicIpOnLaunch"] is True
    other = stack.up("RouteTable", "other", vpcId=vpc.identifier)
    service = {"vpcId": vpc.identifier, "serviceName": "com.amazonaws.us-east-1.s3"}
    stack.up("VpcEndpoint", "s3", **service, routeTableIds=[table.identifier])
    moved = stack.up("VpcEndpoint", "s3", **service, routeTableIds=[other.identifier])
    assert moved.outputs["routeTableIds"] == [other.identifier]
    stack.up("VpcEndpoint", "s3", **service, routeTableIds=[table.identifier])  # moto leaves its route there
    assert_all_read_back(stack)
    assert_gone(stack, grounds)


def test_identities_come_change_and_go(stack, grounds):
    role = stack.up("Role", "role", name="mine", assumeRolePolicy=json.dumps(TRUST), description="first")
    reading = stack.up("Policy", "policy", policy=policy(**MAY_READ))
    stack.up("RolePolicyAttachment", "attached", role=role.identifier, policyArn=reading.identifier)
    stack.up("RolePolicy", "inline", role=role.identifier, policy=policy(**MAY_READ))
    profile = stack.up("InstanceProfile", "profile", role=role.identifier)
    assert role.outputs["arn"] == f"arn:aws:iam::{ACCOUNT}:role/mine"
    assert profile.outputs["role"] == "mine"
    assert_all_read_back(stack)

    for count in range(7):  # IAM keeps five versions of a policy
        changed = policy(**MAY_READ, Sid=f"Version{count}")
        assert stack.up("Policy", "policy", policy=changed).outputs["policy"] == changed
    stack.up("Role", "role", name="mine", assumeRolePolicy=json.dumps(TRUST), description="second", tags={"a": "b"})
    stack.up("RolePolicy", "inline", role=role.identifier, policy=changed)
    assert_all_read_back(stack)
    assert_gone(stack, grounds)


def test_messages_come_change_and_go(stack, grounds):
    queue = stack.up("Queue", "queue", name="q", messageRetentionSeconds=300, sqsManagedSseEnabled=True)
    stack.up("QueuePolicy", "policy", queueUrl=queue.identifier, policy=policy(**NOBODY))
    pattern = {"source": ["aws.ec2"]}
    rule = stack.up("EventRule", "on-spot", name="topolab-dev-on-spot", eventPattern=json.dumps(pattern))
    stack.up("EventTarget", "t", rule=rule.identifier, targetId="to-karpenter", arn=queue.outputs["arn"])
    assert queue.outputs["url"] == queue.identifier
    assert_all_read_back(stack)
    stack.up("Queue", "queue", name="q", messageRetentionSeconds=300, sqsManagedSseEnabled=True, tags={"a": "b"})
    stack.up("Queue", "other", name="r", messageRetentionSeconds=300)  # moto forgets a policy at any change
    stack.up("Queue", "other", name="r", messageRetentionSeconds=600)
    stack.up(
        "EventRule", "on-spot", name="topolab-dev-on-spot", eventPattern='{"source": ["aws.health"]}', tags={"a": "b"}
    )
    assert_all_read_back(stack)
    assert_gone(stack, grounds)


def test_a_bucket_comes_with_its_guards_and_goes(stack, grounds):
    bucket = stack.up("Bucket", "records", bucketPrefix="topolab-test-")
    name = bucket.identifier
    assert name.startswith("topolab-test-")
    assert len(name) == len("topolab-test-") + 26, "18 digits of time and 8 of a counter"
    stack.up("BucketPublicAccessBlock", "b", bucket=name, blockPublicAcls=True, blockPublicPolicy=True)
    stack.up("BucketPolicy", "p", bucket=name, policy=policy(**{**NOBODY, "Action": "s3:*"}))
    by_default = {"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}
    stack.up("BucketServerSideEncryptionConfiguration", "e", bucket=name, rules=[by_default])
    stack.up("BucketVersioning", "v", bucket=name, versioningConfiguration={"status": "Enabled"})
    rule = {
        "id": "leftovers",
        "status": "Enabled",
        "filter": {"prefix": ""},
        "noncurrentVersionExpiration": {"noncurrentDays": 90},
        "abortIncompleteMultipartUpload": {"daysAfterInitiation": 7},
    }
    stack.up("BucketLifecycleConfiguration", "l", bucket=name, rules=[rule])
    assert_all_read_back(stack)
    stack.up("BucketVersioning", "v", bucket=name, versioningConfiguration={"status": "Suspended"})
    assert stack.drift("BucketVersioning", "v") == []
    stack.made.pop(("BucketVersioning", "v"))  # a bucket that was versioned once stays so
    stack.down_all()
    assert grounds.inventory() == {}


def test_a_file_system_comes_and_goes(stack, grounds):
    vpc, subnets, _ = network(stack)
    ports = [(988, 988), (1018, 1023)]
    rules = [{"protocol": "tcp", "fromPort": low, "toPort": high, "cidrBlocks": ["10.0.0.0/16"]} for low, high in ports]
    everything = [{"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["10.0.0.0/16"]}]
    group = stack.up("SecurityGroup", "lustre", vpcId=vpc.identifier, ingress=rules, egress=everything)
    system = stack.up(
        "LustreFileSystem", "lustre", subnetIds=subnets[0].identifier, securityGroupIds=[group.identifier],
        storageCapacity=1200, storageType="SSD", deploymentType="PERSISTENT_2", fileSystemTypeVersion="2.15",
        perUnitStorageThroughput=250, automaticBackupRetentionDays=0, tags={"Name": "l"},
    )  # fmt: skip
    assert system.outputs["dnsName"].startswith(system.identifier)
    assert system.outputs["mountName"]
    assert_all_read_back(stack)
    assert_gone(stack, grounds)


def test_a_cluster_comes_changes_and_goes(stack, grounds):
    made, role, subnets, _ = cluster(stack)
    stack.up(
        "NodeGroup", "system", clusterName="one", nodeRoleArn=role.outputs["arn"], amiType="AL2023_x86_64_STANDARD",
        subnetIds=[one.identifier for one in subnets], instanceTypes=["m7i.xlarge"], diskSize=50,
        scalingConfig={"minSize": 2, "desiredSize": 2, "maxSize": 2},
    )  # fmt: skip
    stack.up("Addon", "agent", clusterName="one", addonName="eks-pod-identity-agent")
    other = stack.up("Role", "gpu", assumeRolePolicy=json.dumps(TRUST))
    entry = {"clusterName": "one", "principalArn": other.outputs["arn"]}
    stack.up("AccessEntry", "gpu", **entry, type="STANDARD")
    admin = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSAdminPolicy"
    stack.up("AccessPolicyAssociation", "gpu", **entry, policyArn=admin, accessScope={"type": "cluster"})
    identity = {"clusterName": "one", "namespace": "kube-system", "serviceAccount": "karpenter"}
    stack.up("PodIdentityAssociation", "karpenter", **identity, roleArn=other.outputs["arn"])
    assert made.outputs["vpcConfig"]["clusterSecurityGroupId"].startswith("sg-")
    assert made.outputs["certificateAuthority"]["data"]
    assert_all_read_back(stack)

    stack.up("PodIdentityAssociation", "karpenter", **identity, roleArn=role.outputs["arn"], tags={"a": "b"})
    open_to = {"subnetIds": [one.identifier for one in subnets], "endpointPublicAccess": True}
    changed = stack.up(
        "Cluster", "eks", name="one", roleArn=role.outputs["arn"], version=KUBERNETES, tags={"a": "b"},
        accessConfig=made.inputs["accessConfig"], vpcConfig={**open_to, "publicAccessCidrs": ["9.9.9.9/32"]},
    )  # fmt: skip
    assert changed.outputs["vpcConfig"]["publicAccessCidrs"] == ["9.9.9.9/32"]
    assert_all_read_back(stack)
    assert_gone(stack, grounds)


def test_questions_are_answered(aws):
    caller = aws.invoke("aws:index/getCallerIdentity:getCallerIdentity", {})
    assert caller["accountId"] == ACCOUNT
    asked = {
        "state": "available",
        "excludeZoneIds": ["use1-az3"],
        "filters": [{"name": "opt-in-status", "values": ["opt-in-not-required"]}],
    }
    zones = aws.invoke("aws:index/getAvailabilityZones:getAvailabilityZones", asked)
    assert "us-east-1b" in zones["names"]
    assert "use1-az3" not in zones["zoneIds"]
    version = {"addonName": "vpc-cni", "kubernetesVersion": KUBERNETES, "mostRecent": True}
    assert aws.invoke("aws:eks/getAddonVersion:getAddonVersion", version)["version"].startswith("v1.")
    assert aws.invoke("aws:index/getPartition:getPartition", {})["partition"] == "aws"
    with pytest.raises(RefusedError, match="unknown argument owner; known here: none"):
        aws.invoke("aws:index/getPartition:getPartition", {"owner": "me"})


def test_another_account_is_refused_at_once(aws):
    with pytest.raises(RefusedError, match=f"AWS account ID not allowed: {ACCOUNT} .allowedAccountIds: 000000000000"):
        aws.configure({"region": "us-east-1", "allowedAccountIds": '["000000000000"]'})


def test_default_tags_stand_on_everything_that_has_tags(stack, grounds):
    _, role, _, _ = cluster(stack)
    stack.up("Queue", "queue")
    tagged = grounds.client("resourcegroupstaggingapi").get_resources(
        TagFilters=[{"Key": "topolab:stack", "Values": ["test"]}]
    )
    arns = [one["ResourceARN"] for one in tagged["ResourceTagMappingList"]]
    for part in (":vpc/", ":subnet/", ":internet-gateway/", ":route-table/", ":cluster/", ":queue-"):
        assert any(part in arn for arn in arns), (part, arns)
    tags = grounds.client("iam").list_role_tags(RoleName=role.identifier)["Tags"]
    assert {"Key": "topolab:stack", "Value": "test"} in tags, "the tagging API knows no roles"


def test_a_deleted_tag_a_changed_setting_and_a_deleted_object_are_seen(stack, grounds):
    _, subnets, table = network(stack)
    ec2 = grounds.client("ec2")
    ec2.delete_tags(Resources=[subnets[0].identifier], Tags=[{"Key": "topolab:stack"}])
    assert stack.drift("Subnet", "us-east-1a") == ['tags["topolab:stack"]']
    ec2.create_tags(Resources=[subnets[1].identifier], Tags=[{"Key": "by", "Value": "hand"}])
    assert stack.drift("Subnet", "us-east-1b") == ["tags.by"]
    ec2.delete_route(RouteTableId=table.identifier, DestinationCidrBlock="0.0.0.0/0")
    assert stack.drift("Route", "out") is None
    ec2.modify_subnet_attribute(SubnetId=subnets[1].identifier, MapPublicIpOnLaunch={"Value": True})
    assert stack.drift("Subnet", "us-east-1b") == ["mapPublicIpOnLaunch", "tags.by"]


def test_throttling_is_waited_out_and_other_refusals_are_not(stack, grounds):
    grounds.refuse(Fault(who="aws", match="^CreateVpc", error="RequestLimitExceeded", times=2))
    stack.up("Vpc", "vpc", cidrBlock="10.0.0.0/16")
    tries = [one.outcome for one in operations.read(grounds.site.operations) if one.verb == "CreateVpc"]
    assert tries == ["RequestLimitExceeded", "RequestLimitExceeded", "ok"]
    grounds.refuse(Fault(who="aws", match="^CreateVpc", error="VpcLimitExceeded"))
    with pytest.raises(RefusedError) as error:
        stack.up("Vpc", "second", cidrBlock="10.1.0.0/16")
    sentence = "creating Vpc (second): operation error CreateVpc, api error VpcLimitExceeded: "
    assert str(error.value).startswith(sentence)


def test_what_was_made_before_a_failure_is_remembered_and_finished(stack, grounds):
    vpc = stack.up("Vpc", "vpc", cidrBlock="10.0.0.0/16")
    grounds.refuse(Fault(who="aws", match="^AttachInternetGateway", error="UnauthorizedOperation", times=None))
    resource = stack.resource("InternetGateway", "internet")
    inputs = dict(stack.aws.check(resource, {}, {"vpcId": vpc.identifier}, b"").inputs)
    with pytest.raises(InitFailedError) as error:
        stack.aws.create(resource, inputs, timeout_s=0)
    failed = error.value
    assert (failed.identifier[:4], failed.outputs[UNFINISHED]) == ("igw-", True)
    assert "AttachInternetGateway, api error UnauthorizedOperation" in str(failed)

    grounds.refuse()
    kept = Found(identifier=failed.identifier, inputs=inputs, outputs=failed.outputs)
    outputs = stack.aws.update(resource, kept, inputs, timeout_s=0)
    assert outputs["vpcId"] == vpc.identifier
    assert UNFINISHED not in outputs
    assert grounds.inventory()["ec2:internet-gateway"] == [failed.identifier], "no twin"


def test_what_others_hold_is_waited_for_and_then_named(stack, grounds):
    vpc, subnets, _ = network(stack)
    ec2 = grounds.client("ec2")
    held = ec2.create_network_interface(SubnetId=subnets[0].identifier)["NetworkInterface"]["NetworkInterfaceId"]
    with pytest.raises(RefusedError, match=r"deleting Subnet .us-east-1a.: .*DeleteSubnet, api error DependencyVio"):
        stack.down("Subnet", "us-east-1a")
    tries = [one for one in operations.read(grounds.site.operations) if one.verb == "DeleteSubnet"]
    assert len(tries) > 1, "the wait is one of several tries"
    grounds.refuse(Fault(who="aws", match="^DeleteSubnet", error="DependencyViolation", times=3))
    ec2.delete_network_interface(NetworkInterfaceId=held)
    stack.down("Subnet", "us-east-1a", timeout_s=30)
    assert subnets[0].identifier not in grounds.inventory()["ec2:subnet"]
    assert vpc.identifier in grounds.inventory()["ec2:vpc"]


def test_an_addon_that_never_gets_a_node_is_remembered_with_the_reason(stack, grounds):
    Waits(ready_s=0.5).save(grounds.site)
    stack.aws.configure({"region": "us-east-1"})
    cluster(stack)
    with pytest.raises(InitFailedError, match=r"timeout after 0.5 s .*last state DEGRADED: The add-on is unhealthy"):
        stack.up("Addon", "dns", clusterName="one", addonName="coredns")


def test_ctrl_c_ends_a_wait_and_keeps_what_was_made(stack):
    cluster(stack)
    stack.aws.stopping.set()
    with pytest.raises(InitFailedError, match="canceled while waiting for add-on one:coredns to be ACTIVE"):
        stack.up("Addon", "dns", clusterName="one", addonName="coredns")
