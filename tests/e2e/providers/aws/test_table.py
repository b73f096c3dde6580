"""The table against the program: what each stack asks for is in it, and what nobody asked for is refused by name."""

import pytest

from tests import pulumi_engine
from tests.e2e.providers.aws.kinds import as_asked, checked, random_digits, same
from tests.e2e.providers.aws.questions import QUESTIONS
from tests.e2e.providers.aws.stand_in import Aws
from tests.e2e.providers.aws.table import KINDS
from tests.e2e.providers.eks_arguments import fault_of
from tests.e2e.providers.serving import Found, RefusedError, Resource
from tests.e2e.providers.values import UNKNOWN
from tests.e2e.site import Site

ENGINE_OWN = {"pulumi:pulumi:getResource"}
STACKS = [*pulumi_engine.stack_names(), *pulumi_engine.VARIANTS]
SEED = b"the engine's seed"


def plain(value):
    """Whole numbers as the protocol hands them over."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def resource_of(type_, name="one"):
    return Resource(urn=f"urn:pulumi:dev::topolab::{type_}::{name}", type=type_, name=name)


@pytest.fixture(name="aws")
def _aws(tmp_path):
    site = Site(
        folder=tmp_path, tools=tmp_path, kubeconfig=tmp_path / "k", aws_endpoint="http://127.0.0.1:1", charts=tmp_path
    )
    return Aws(site)


@pytest.mark.parametrize("stack", STACKS)
def test_everything_that_a_stack_asks_of_aws_is_in_the_table(stack):
    graph = pulumi_engine.registered(stack)
    asked = [one for one in graph.resources if one.type.startswith("aws:")]
    assert {one.type for one in asked} <= set(KINDS)
    refused = {
        one.urn: failures
        for one in asked
        if (failures := checked(KINDS[one.type], resource_of(one.type), {}, plain(one.inputs), SEED).failures)
    }
    assert refused == {}
    assert set(graph.invokes) - ENGINE_OWN <= set(QUESTIONS)
    assert [fault_of(one.inputs) for one in graph.of("eks:index:Cluster")] == [None] * (stack != "local")
    assert bool(asked) == (stack != "local")


def test_a_preview_knows_less_and_is_taken_as_well():
    graph = pulumi_engine.registered("dev", preview=True)
    asked = [one for one in graph.resources if one.type.startswith("aws:")]
    assert any(UNKNOWN in str(one.inputs) for one in asked)
    for one in asked:
        assert not checked(KINDS[one.type], resource_of(one.type), {}, plain(one.inputs), SEED).failures


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.TYPE)
def test_a_row_speaks_of_its_own_inputs_alone(kind):
    inputs = set(kind.INPUTS)
    named = {path.split(".")[0] for path in kind.REPLACE} | set(kind.REQUIRED) | set(kind.DEFAULTS)
    named |= {kind.NAME, kind.PREFIX} - {None}
    assert named <= inputs
    assert kind.DEFAULTS.keys().isdisjoint(kind.REQUIRED)
    assert not kind.tagged or "tagsAll" in kind.COMPUTED
    assert kind.NAME is None or kind.NAME in kind.REPLACE


def test_a_type_that_is_in_no_row_is_refused_by_name(aws):
    made_up = resource_of("aws:ec2/teapot:Teapot")
    sentence = "the stand-in of aws has no resource type aws:ec2/teapot:Teapot; add a row to its table"
    with pytest.raises(RefusedError, match=sentence):
        aws.check(made_up, {}, {}, SEED)
    with pytest.raises(RefusedError, match=sentence):
        aws.create(made_up, {}, timeout_s=0)


@pytest.mark.parametrize(
    ("inputs", "property_", "words"),
    [
        (
            {"cidrBlock": "10.0.0.0/16", "colour": "red"},
            "colour",
            "takes no argument 'colour' here; it takes cidrBlock",
        ),
        ({"cidrBlock": 10}, "cidrBlock", "cidrBlock = 10: expected a string"),
        ({"enableDnsSupport": "true"}, "enableDnsSupport", "enableDnsSupport = 'true': expected true or false"),
        ({"tags": {"a": 1}}, "tags", "expected a map of strings"),
    ],
)
def test_an_argument_that_a_type_does_not_take_is_refused_by_name(aws, inputs, property_, words):
    failures = aws.check(resource_of("aws:ec2/vpc:Vpc"), {}, inputs, SEED).failures
    assert list(failures) == [property_]
    assert words in failures[property_]


def test_what_is_nested_is_looked_at_too(aws):
    group = resource_of("aws:eks/nodeGroup:NodeGroup")
    given = {"clusterName": "c", "nodeRoleArn": "r", "subnetIds": ["s"], "scalingConfig": {"minSizes": 2}}
    failures = aws.check(group, {}, given, SEED).failures
    assert failures == {
        "scalingConfig": "scalingConfig.minSizes: no such argument; there are desiredSize, maxSize, minSize"
    }
    policy = aws.check(resource_of("aws:iam/policy:Policy"), {}, {"policy": "{no json"}, SEED).failures
    assert policy == {"policy": "policy = '{no json': expected a JSON document"}


def test_a_missing_argument_is_named(aws):
    failures = aws.check(resource_of("aws:ec2/subnet:Subnet"), {}, {"cidrBlock": "10.0.0.0/24"}, SEED).failures
    assert failures == {
        "vpcId": 'Missing required argument. The argument "vpcId" of aws:ec2/subnet:Subnet is required.'
    }


def test_a_name_that_is_left_out_is_made_up_once(aws):
    role, trust = resource_of("aws:iam/role:Role", "gpu-node"), {"assumeRolePolicy": "{}"}
    first = aws.check(role, {}, trust, SEED).inputs
    assert first["name"] == f"gpu-node-{random_digits(SEED)}"
    assert len(first["name"]) == len("gpu-node-") + 7
    again = aws.check(role, first, trust, b"another seed").inputs
    assert again["name"] == first["name"]
    renamed = aws.check(role, {"name": "mine"}, trust, SEED).inputs
    assert renamed["name"] == first["name"], "a name that was asked for goes with the wish"


def test_a_bucket_with_a_prefix_gets_no_name_before_it_is_made(aws):
    bucket = resource_of("aws:s3/bucket:Bucket")
    assert "bucket" not in aws.check(bucket, {}, {"bucketPrefix": "topolab-"}, SEED).inputs
    inputs = {"bucketPrefix": "topolab-", "tags": {}}
    assert aws.previewed(bucket, inputs, None)["bucket"] == UNKNOWN


REPLACED = [
    ("aws:ec2/vpc:Vpc", "cidrBlock", "10.0.0.0/16", "10.1.0.0/16"),
    ("aws:ec2/subnet:Subnet", "availabilityZone", "us-east-1a", "us-east-1b"),
    ("aws:ec2/subnet:Subnet", "cidrBlock", "10.0.0.0/24", "10.0.1.0/24"),
    ("aws:ec2/natGateway:NatGateway", "subnetId", "subnet-1", "subnet-2"),
    ("aws:ec2/routeTableAssociation:RouteTableAssociation", "subnetId", "subnet-1", "subnet-2"),
    ("aws:eks/cluster:Cluster", "roleArn", "arn:1", "arn:2"),
    ("aws:eks/nodeGroup:NodeGroup", "instanceTypes", ["m7i.xlarge"], ["m7i.large"]),
    ("aws:eks/nodeGroup:NodeGroup", "subnetIds", ["subnet-1"], ["subnet-2"]),
    ("aws:eks/podIdentityAssociation:PodIdentityAssociation", "serviceAccount", "a", "b"),
    ("aws:fsx/lustreFileSystem:LustreFileSystem", "deploymentType", "SCRATCH_2", "PERSISTENT_2"),
    ("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "policyArn", "arn:1", "arn:2"),
    ("aws:s3/bucket:Bucket", "bucketPrefix", "a-", "b-"),
]
CHANGED = [
    ("aws:ec2/vpc:Vpc", "enableDnsHostnames", True, False),
    ("aws:ec2/subnet:Subnet", "mapPublicIpOnLaunch", False, True),
    ("aws:ec2/subnet:Subnet", "tags", {"Name": "a"}, {"Name": "b"}),
    ("aws:ec2/internetGateway:InternetGateway", "vpcId", "vpc-1", "vpc-2"),
    ("aws:ec2/route:Route", "natGatewayId", "nat-1", "nat-2"),
    ("aws:ec2/vpcEndpoint:VpcEndpoint", "routeTableIds", ["rtb-1"], ["rtb-2"]),
    ("aws:eks/cluster:Cluster", "version", "1.34", "1.35"),
    ("aws:eks/cluster:Cluster", "vpcConfig", {"endpointPublicAccess": True}, {"endpointPublicAccess": False}),
    ("aws:eks/nodeGroup:NodeGroup", "scalingConfig", {"minSize": 2}, {"minSize": 3}),
    ("aws:eks/podIdentityAssociation:PodIdentityAssociation", "roleArn", "arn:1", "arn:2"),
    ("aws:iam/role:Role", "assumeRolePolicy", '{"a": 1}', '{"a": 2}'),
    ("aws:iam/policy:Policy", "policy", '{"a": 1}', '{"a": 2}'),
    ("aws:sqs/queue:Queue", "messageRetentionSeconds", 300, 600),
    ("aws:cloudwatch/eventRule:EventRule", "eventPattern", '{"a": [1]}', '{"a": [2]}'),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "name", "old", "new"), REPLACED)
def test_these_changes_make_another_object(aws, type_, name, old, new):
    change = aws.diff(resource_of(type_), Found(identifier="i", inputs={name: old}, outputs={}), {name: new})
    assert change.paths
    assert change.replaces == set(change.paths)


@pytest.mark.parametrize(("type_", "name", "old", "new"), CHANGED)
def test_these_changes_keep_the_object(aws, type_, name, old, new):
    change = aws.diff(resource_of(type_), Found(identifier="i", inputs={name: old}, outputs={}), {name: new})
    assert change.paths
    assert change.replaces == frozenset()


def test_an_object_whose_name_stays_is_deleted_before_its_successor_is_made(aws):
    entry = resource_of("aws:eks/nodeGroup:NodeGroup")
    old = Found(identifier="i", inputs={"nodeGroupName": "n", "diskSize": 50}, outputs={})
    assert aws.diff(entry, old, {"nodeGroupName": "n", "diskSize": 60}).delete_before_replace
    assert not aws.diff(entry, old, {"nodeGroupName": "m", "diskSize": 60}).delete_before_replace
    subnet = Found(identifier="i", inputs={"cidrBlock": "10.0.0.0/24"}, outputs={})
    assert not aws.diff(
        resource_of("aws:ec2/subnet:Subnet"), subnet, {"cidrBlock": "10.0.1.0/24"}
    ).delete_before_replace


def test_what_says_the_same_is_no_change(aws):
    assert same('{"a": [1, 2]}', '{ "a":[1,2] }')
    assert same(["b", "a"], ["a", "b"])
    assert not same('{"a": [1, 2]}', '{"a": [2, 1]}')
    assert not same([1, 2], [2, 1])
    old = Found(identifier="i", inputs={"routeTableIds": ["a", "b"], "__defaults": []}, outputs={})
    assert aws.diff(resource_of("aws:ec2/vpcEndpoint:VpcEndpoint"), old, {"routeTableIds": ["b", "a"]}).paths == {}


def test_a_live_object_is_told_in_the_words_that_made_it():
    kind = KINDS["aws:eks/cluster:Cluster"]
    asked = {
        "accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True},
        "tags": {"a": "1"},
        "vpcConfig": {"subnetIds": ["s2", "s1"]},
    }
    live = {
        "accessConfig": {"authenticationMode": "API"},
        "arn": "arn:aws:eks",
        "tags": {"a": "1"},
        "vpcConfig": {"subnetIds": ["s1", "s2"], "vpcId": "vpc-1"},
    }
    assert as_asked(kind, asked, live) == asked
    drifted = as_asked(kind, asked, {**live, "tags": {"a": "1", "b": "2"}})
    assert drifted["tags"] == {"a": "1", "b": "2"}


def test_default_tags_reach_what_can_be_tagged_and_its_own_win(aws):
    aws._default_tags = {"stack": "dev", "Name": "nobody"}
    vpc = aws.check(resource_of("aws:ec2/vpc:Vpc"), {}, {"tags": {"Name": "vpc"}}, SEED).inputs
    assert vpc["tags"] == {"stack": "dev", "Name": "vpc"}
    route = aws.check(
        resource_of("aws:ec2/route:Route"), {}, {"routeTableId": "r", "destinationCidrBlock": "0.0.0.0/0"}, SEED
    )
    assert "tags" not in route.inputs


def test_a_provider_argument_that_it_does_not_know_is_refused_by_name(aws):
    assert aws.check_config({"region": "us-east-1", "__internal": {}}).failures == {}
    failures = aws.check_config({"assumeRole": "{}"}).failures
    assert "knows no provider argument 'assumeRole'" in failures["assumeRole"]


def test_a_region_and_a_profile_that_is_there_are_needed(aws, monkeypatch, tmp_path):
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    (tmp_path / "config").write_text("[profile lab]\nregion = eu-west-1\n")
    with pytest.raises(RefusedError, match="aws:region isn't set"):
        aws.configure({})
    aws.configure({"profile": "lab"})
    assert aws.cloud.region == "eu-west-1"
    with pytest.raises(RefusedError, match="aws:profile = 'elsewhere': failed to get shared config profile"):
        aws.configure({"region": "us-east-1", "profile": "elsewhere"})


def test_another_region_replaces_the_provider_and_other_arguments_do_not(aws):
    old = {"region": "us-east-1", "defaultTags": "{}"}
    assert aws.diff_config(old, {**old, "region": "us-west-2"}).replaces == {"region"}
    changed = aws.diff_config(old, {**old, "defaultTags": '{"tags": {}}'})
    assert (list(changed.paths), changed.replaces) == (["defaultTags"], frozenset())


def test_a_question_that_nobody_asks_is_refused(aws):
    with pytest.raises(RefusedError, match="has no answer to aws:ec2/getAmi:getAmi; it answers aws:eks/getAddon"):
        aws.invoke("aws:ec2/getAmi:getAmi", {})


VALID = {
    "authenticationMode": "API",
    "privateSubnetIds": ["a"],
    "skipDefaultNodeGroup": True,
    "skipDefaultSecurityGroups": True,
    "vpcId": "vpc-1",
}


@pytest.mark.parametrize(
    ("more", "name", "words"),
    [
        ({"gpu": True}, "gpu", "takes no argument 'gpu'; it takes accessEntries"),
        ({"authenticationMode": "IAM"}, "authenticationMode", "Invalid value for authenticationMode: IAM."),
        ({"roleMappings": [{}]}, "roleMappings", "does not support non-empty values"),
        ({"userMappings": [{}]}, "userMappings", "does not support non-empty values"),
        ({"authenticationMode": "CONFIG_MAP", "accessEntries": {"a": {}}}, "accessEntries", "set to 'CONFIG_MAP'"),
        ({"subnetIds": ["a"]}, "subnetIds", "mutually exclusive"),
        ({"publicAccessCidrs": ["9.9.9.9/32"], "endpointPublicAccess": False}, "publicAccessCidrs", "can only be set"),
        ({"authenticationMode": "CONFIG_MAP"}, "authenticationMode", "knows mode API alone"),
        ({"skipDefaultNodeGroup": False}, "skipDefaultNodeGroup", "makes no node group"),
        ({"createOidcProvider": True}, "createOidcProvider", "makes no OIDC provider"),
        ({"corednsAddonOptions": {"enabled": True}}, "corednsAddonOptions", "makes no coredns add-on"),
    ],
)
def test_the_cluster_component_refuses_by_name(more, name, words):
    assert fault_of(VALID) is None
    fault = fault_of({**VALID, **more})
    assert fault is not None
    assert (fault[0], words in fault[1]) == (name, True), fault


def test_the_cluster_component_has_no_default_vpc():
    fault = fault_of({key: value for key, value in VALID.items() if key != "vpcId"})
    assert fault == ("vpcId", "the stand-in of eks has no default VPC: give one")
