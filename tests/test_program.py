"""House rules that the program keeps on every stack file, and on the options that no file shows."""

import ast
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest

from tests.pulumi_engine import (
    ROOT,
    TOKEN,
    VARIANTS,
    Graph,
    Registered,
    StackFile,
    in_the_clear,
    leaves,
    read_stack,
    registered,
    run,
    stack_names,
)

STACKS = [*stack_names(), *VARIANTS]
ON_AWS = [name for name in STACKS if name != "local"]
SOURCES = sorted((ROOT / "infra").glob("*.py"))


@pytest.fixture(params=STACKS)
def graph(request) -> Graph:
    return registered(request.param)


@pytest.fixture(params=ON_AWS)
def aws_graph(request) -> Graph:
    return registered(request.param)


def test_every_component_registers_its_outputs(graph):
    components = [r for r in graph.resources if r.type.startswith("topolab:")]
    assert components
    assert [r.urn for r in components if r.urn not in graph.finished] == []


def test_every_resource_stands_in_a_component(graph):
    components = {r.urn for r in graph.resources if r.type.startswith("topolab:")}
    outside = [r.urn for r in graph.resources if not r.type.startswith("topolab:") and r.parent not in components]
    assert outside == []


@pytest.mark.parametrize("name", STACKS)
def test_a_preview_registers_the_graph_of_the_update(name):
    def shape(graph: Graph) -> dict[str, Any]:
        return {
            r.urn: (r.parent, r.dependencies, r.provider.rsplit("::", 1)[0], r.retained, r.delete_timeout)
            for r in graph.resources
        }

    assert shape(registered(name, preview=True)) == shape(registered(name))


def test_everything_of_aws_goes_through_our_provider_whose_tags_say_whose_it_is(aws_graph):
    provider = aws_graph.one("pulumi:providers:aws")
    tags = json.loads(provider.inputs["defaultTags"])["tags"]
    assert tags == {"topolab:project": "topolab", "topolab:stack": aws_graph.name}
    others = [r.urn for r in aws_graph.resources if r.type.startswith("aws:") and _provider(r) != provider.urn]
    assert others == []
    assert _urn(aws_graph.one("eks:index:Cluster").providers["aws"]) == provider.urn


def test_what_karpenter_launches_carries_the_same_tags(aws_graph):
    tags = aws_graph.one("EC2NodeClass").inputs["spec"]["tags"]
    assert tags["topolab:project"] == "topolab"
    assert tags["topolab:stack"] == aws_graph.name


def test_every_kubernetes_object_goes_through_our_provider(graph):
    provider = graph.one("pulumi:providers:kubernetes")
    assert provider.inputs["enableServerSideApply"] in (True, "true")
    objects = [r for r in graph.resources if r.type.startswith("kubernetes:")]
    assert len(objects) >= 5
    assert [r.urn for r in objects if _provider(r) != provider.urn] == []


def test_what_holds_data_is_kept_at_destroy_and_nothing_else_is(aws_graph):
    kept = {r.type.split(":")[-1] for r in aws_graph.resources if r.retained}
    bucket = {
        "Bucket", "BucketPolicy", "BucketPublicAccessBlock", "BucketVersioning",
        "BucketServerSideEncryptionConfiguration", "BucketLifecycleConfiguration",
    }  # fmt: skip
    file_system = {"LustreFileSystem", "SecurityGroup", "Subnet", "Vpc"}
    expected = {"own-bucket": set(), "kept": bucket | file_system}.get(aws_graph.name, bucket)
    assert kept == expected


def test_what_is_kept_says_so_by_a_tag_and_nothing_else_does(aws_graph):
    taggable = {"Bucket", "LustreFileSystem", "SecurityGroup", "Subnet", "Vpc"}
    kept = {r.urn for r in aws_graph.resources if r.retained and r.kind in taggable}
    says = {r.urn for r in aws_graph.resources if (r.inputs.get("tags") or {}).get("topolab:kept") == "by-choice"}
    assert says == kept


def test_nothing_is_protected_against_destroy(graph):
    assert [r.urn for r in graph.resources if r.protected] == []


DESTROY_ORDER = (
    # (what goes first, what outlives it); facts of Karpenter, EKS and the CNI behind each stand in the code.
    (("TrainJob", "train-job"), ("ClusterTrainingRuntime", "runtime")),
    (("TrainJob", "train-job"), ("ConfigMap", "configmap-config")),
    (("TrainJob", "train-job"), ("Namespace", "namespace")),
    (("TrainJob", "train-job"), ("PodIdentityAssociation", "trainer")),
    (("TrainJob", "train-job"), ("ValidatingAdmissionPolicyBinding", "pod-policy-binding")),
    (("ValidatingAdmissionPolicyBinding", "pod-policy-binding"), ("ValidatingAdmissionPolicy", "pod-policy")),
    (("ClusterTrainingRuntime", "runtime"), ("Release", "kubeflow-trainer")),
    (("Namespace", "namespace"), ("Release", "nvidia-device-plugin")),
    (("Namespace", "namespace"), ("Release", "aws-efa-k8s-device-plugin")),
    (("Release", "kubeflow-trainer"), ("NodePool", "node-pool")),
    (("Release", "nvidia-device-plugin"), ("NodePool", "node-pool")),
    (("Release", "aws-efa-k8s-device-plugin"), ("NodePool", "node-pool")),
    (("NodePool", "node-pool"), ("EC2NodeClass", "node-class")),
    (("EC2NodeClass", "node-class"), ("InstanceProfile", "gpu-node")),
    (("EC2NodeClass", "node-class"), ("NodesDrained", "nodes-drained")),
    (("NodesDrained", "nodes-drained"), ("InstanceProfile", "gpu-node")),
    (("NodesDrained", "nodes-drained"), ("Release", "karpenter")),
    (("NodesDrained", "nodes-drained"), ("eks:index:Cluster", "eks")),
    (("InstanceProfile", "gpu-node"), ("Release", "karpenter")),
    (("Release", "karpenter"), ("Release", "karpenter-crd")),
    (("Release", "karpenter"), ("Queue", "interruptions")),
    (("Release", "karpenter"), ("QueuePolicy", "interruptions")),
    (("Release", "karpenter"), ("PodIdentityAssociation", "controller")),
    (("Release", "karpenter"), ("RolePolicyAttachment", "node-lifecycle")),
    (("Release", "karpenter"), ("RolePolicyAttachment", "resource-discovery")),
    (("Release", "karpenter"), ("AccessEntry", "gpu-node")),
    (("Release", "karpenter"), ("Addon", "coredns")),
    (("Release", "karpenter-crd"), ("NodeGroup", "system")),
    (("Addon", "coredns"), ("NodeGroup", "system")),
    (("NodeGroup", "system"), ("Addon", "eks-pod-identity-agent")),
    (("NodeGroup", "system"), ("Addon", "vpc-cni")),
    (("NodeGroup", "system"), ("Addon", "kube-proxy")),
    (("Addon", "eks-pod-identity-agent"), ("eks:index:Cluster", "eks")),
    (("eks:index:Cluster", "eks"), ("InterfacesGone", "interfaces-gone")),
    (("InterfacesGone", "interfaces-gone"), ("Subnet", "gpu-private")),
    (("InterfacesGone", "interfaces-gone"), ("Subnet", "other-private")),
    (("InterfacesGone", "interfaces-gone"), ("Subnet", "gpu-public")),
    (("InterfacesGone", "interfaces-gone"), ("Subnet", "other-public")),
    (("InterfacesGone", "interfaces-gone"), ("RouteTableAssociation", "private-gpu")),
    (("InterfacesGone", "interfaces-gone"), ("NatGateway", "nat")),
    (("InterfacesGone", "interfaces-gone"), ("Vpc", "vpc")),
    (("eks:index:Cluster", "eks"), ("Route", "private-default")),
    (("eks:index:Cluster", "eks"), ("Route", "public-default")),
    (("eks:index:Cluster", "eks"), ("RouteTableAssociation", "private-gpu")),
    (("eks:index:Cluster", "eks"), ("NatGateway", "nat")),
    (("eks:index:Cluster", "eks"), ("VpcEndpoint", "s3")),
    (("eks:index:Cluster", "eks"), ("Subnet", "gpu-private")),
    (("NatGateway", "nat"), ("InternetGateway", "internet")),
)


@pytest.mark.parametrize(("first", "later"), DESTROY_ORDER, ids="-".join)
def test_destroy_takes(first, later):
    for name in ON_AWS:
        graph = registered(name)
        assert graph.outlives(graph.one(*later), graph.one(*first)), name
        assert not graph.outlives(graph.one(*first), graph.one(*later)), name


def test_a_placement_group_goes_after_its_nodes_and_before_karpenter():
    for name in ("g6e12xl-4x4-efa1-pg", "g6e12xl-4x4-tcp-pg"):
        graph = registered(name)
        group = graph.one("PlacementGroup")
        assert graph.outlives(group, graph.one("EC2NodeClass"))
        assert graph.outlives(group, graph.one("NodesDrained")), "a stray instance would hold it"
        assert graph.outlives(graph.one("Release", "karpenter"), group)


@pytest.mark.parametrize("name", ["scratch", "kept"])
def test_a_volume_goes_before_the_driver_that_unmounts_it_and_the_file_system(name):
    graph = registered(name)
    claim, volume = graph.one("PersistentVolumeClaim"), graph.one("PersistentVolume")
    driver, system = graph.one("Addon", "aws-fsx-csi-driver"), graph.one("LustreFileSystem")
    assert graph.outlives(claim, graph.one("TrainJob"))
    assert graph.outlives(volume, claim)
    assert graph.outlives(driver, volume)
    assert graph.outlives(system, volume)
    assert graph.outlives(graph.one("NodePool"), driver)


def test_the_token_is_in_one_secret_and_nowhere_in_the_clear():
    graph = registered("gated")
    clear = [r.urn for r in graph.resources for text in in_the_clear(r.raw) if TOKEN in str(text)]
    assert clear == []
    assert TOKEN not in json.dumps(graph.outputs)
    holders = [r.urn for r in graph.resources if any(TOKEN in str(leaf) for leaf in leaves(r.inputs))]
    assert holders == [graph.one("kubernetes:core/v1:Secret").urn]


def test_a_run_without_gated_data_makes_no_secret():
    assert registered("dev").of("kubernetes:core/v1:Secret") == []


NAME_LIMITS = {
    "Role": 64, "Policy": 128, "InstanceProfile": 128, "Queue": 80, "EventRule": 64, "PlacementGroup": 255,
    "LaunchTemplate": 128,
    "eks:index:Cluster": 100,
}  # fmt: skip


def test_names_stay_within_the_limits_of_aws(aws_graph):
    named = [
        (r, limit) for r in aws_graph.resources for kind, limit in NAME_LIMITS.items()
        if r.type == kind or (r.type.startswith("aws:") and r.type.endswith(f":{kind}"))
    ]  # fmt: skip
    assert len(named) >= 15
    for one, limit in named:
        assert re.fullmatch(r"[a-z0-9-]+", one.inputs["name"]), one.urn
        assert len(one.inputs["name"]) <= limit, one.urn


def test_no_two_resources_of_a_kind_share_a_name_in_aws(aws_graph):
    names = [
        (r.type, r.inputs["name"]) for r in aws_graph.resources if r.type.startswith("aws:") and "name" in r.inputs
    ]
    assert len(names) == len(set(names))


def test_outputs_say_what_runs_where_the_records_go_and_what_to_do_next(graph):
    outputs = graph.outputs
    assert outputs["namespace"] == "topolab"
    assert outputs["trainJob"] == graph.one("TrainJob").inputs["metadata"]["name"]
    assert outputs["trainJob"] in outputs["next"]
    assert outputs["records"] in outputs["next"]
    assert re.match(r"(s3|file)://", outputs["records"])


def test_the_kubeconfig_is_an_output_and_secret(aws_graph):
    assert json.loads(aws_graph.outputs["kubeconfig"])["kind"] == "Config"
    assert aws_graph.secret_outputs == {"kubeconfig"}


def test_a_cost_is_predicted_with_its_range_and_the_price_of_an_hour():
    assert re.fullmatch(
        r"\d+\.\d\d USD, \d+\.\d\d to \d+\.\d\d; GPU nodes 9\.06 USD an hour while they are up",
        registered("dev").outputs["predictedCost"],
    )
    assert registered("local").outputs["predictedCost"] == "none: local machine"


PAST_BLOCK = {"mode": "capacityBlock", "id": "cr-0123456789abcdef0", "endsAt": "2026-01-01T11:30:00Z"}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another stack's platform": ({"platform": {"sharedWith": "me/topolab/dev"}}, "platform.sharedWith"),
    "a reservation without its id": ({"platform": {"capacity": {"mode": "reservation"}}}, "platform.capacity.id"),
    "a capacity block that is over": ({"platform": {"capacity": PAST_BLOCK}}, "the block is over"),
    "a budget under the predicted cost": ({"platform": {"budgetUsd": 0.01}}, "platform.budgetUsd"),
    "an unknown key": ({"platfrom": {"zone": "us-east-1a"}}, "did you mean platform?"),
    "an unknown topology": ({"topology": "g6e8xl-2x1-efa2"}, "efa1 or fewer"),
    "a key that isn't a mapping": ({"run": "fast"}, "run"),
    "a folder of charts that isn't there": ({"charts": "/no/such/folder"}, "topolab:charts"),
    "a zone without a control plane": ({"platform": {"zone": "us-east-1e"}}, "EKS has no control plane there"),
    "another account": ({"platform": {"allowedAccounts": ["999999999999"]}}, "allowedAccounts"),
}


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_cannot_be_is_one_sentence_and_no_traceback(case):
    values, expected = REFUSED[case]
    with pytest.raises(pulumi.RunError) as refused:
        run(_only(values))
    assert expected in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_a_stack_on_aws_without_a_region_is_told_which_key_is_missing():
    config = {k: v for k, v in read_stack("dev").config.items() if k != "aws:region"}
    config["topolab:platform"] = {"zone": "us-east-1b"}
    with pytest.raises(pulumi.RunError, match=r"Pulumi.dev.yaml: aws:region is missing"):
        run(StackFile(stack="dev", config=config))


def test_an_allowed_account_is_let_through_and_the_provider_holds_to_it():
    graph = run(_only({"platform": {"allowedAccounts": ["123456789012"]}}))
    assert json.loads(graph.one("pulumi:providers:aws").inputs["allowedAccountIds"]) == ["123456789012"]


def test_aws_is_asked_questions_by_the_platform_alone():
    asking = [path.name for path in SOURCES if re.search(r"\baws(\.\w+)*\.get_\w+\(", path.read_text(encoding="utf-8"))]
    assert asking == ["platform.py"]


def test_every_dependency_that_data_does_not_make_says_why():
    plumbing = {"component.py", "charts.py"}
    silent = [
        f"{path.name}:{number}"
        for path in SOURCES
        if path.name not in plumbing
        for number, above, line in _with_above(path)
        if "depends_on=" in line and not any("#" in text for text in above)
    ]
    assert silent == []


def test_components_are_short_and_the_program_fits_a_screen():
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {name: n for name, n in lengths.items() if n > 150} == {}
    assert len((ROOT / "__main__.py").read_text(encoding="utf-8").splitlines()) <= 40


def test_no_resource_is_made_inside_an_apply():
    makers = {name for name, _ in inspect.getmembers(aws.ec2, inspect.isclass)}
    for path in SOURCES:
        for call in _applies(path):
            made = {n.attr for n in ast.walk(call) if isinstance(n, ast.Attribute)} & makers
            assert made == set(), f"{path.name}:{call.lineno}"


def _only(values: dict[str, Any]) -> StackFile:
    return read_stack("dev").with_values(**values)


def _urn(reference: str) -> str:
    return reference.rsplit("::", 1)[0]


def _provider(one: Registered) -> str:
    return _urn(one.provider)


def _with_above(path: Path) -> list[tuple[int, list[str], str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(i + 1, lines[max(0, i - 3) : i], line) for i, line in enumerate(lines)]


def _applies(path: Path) -> list[ast.Call]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "apply"
    ]
