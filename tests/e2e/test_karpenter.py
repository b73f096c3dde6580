"""Karpenter behind the fake cloud: pods of each GPU topology get the nodes that were meant; others get a reason."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml

from tests.e2e.charts.folder import assemble_charts
from tests.e2e.children import Children, wait_until
from tests.e2e.cloud.start import start_cloud
from tests.e2e.cluster.api import Api
from tests.e2e.cluster.cluster import Cluster, start_cluster
from tests.e2e.cluster.trainer import install_trainer
from tests.e2e.karpenter.account import KarpenterAccount, make_account
from tests.e2e.karpenter.arm import ZONE, Arm, arm_of
from tests.e2e.karpenter.install import NAMESPACE, install_karpenter
from tests.e2e.site import REGION, Site
from tests.e2e.tools import module_path, tool_folder
from workloads.catalogue.topologies import parse_topology
from workloads.cli.main import main
from workloads.planning.stack_file import parse_stack_file

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
LAUNCH_S = 150
"""30 s of boot are hard-coded upstream; the rest is for a busy machine."""
POOLS, CLASSES = "/apis/karpenter.sh/v1/nodepools", "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/karpenter"


def gpu_topologies() -> list[str]:
    """Of the stack files, each once, without local machines."""
    texts = {path.name: path.read_text() for path in sorted(ROOT.glob("Pulumi.*.yaml"))}
    names = {parse_stack_file(text, name).stack.topology for name, text in texts.items()}
    return sorted(name for name in names if not parse_topology(name).machine.is_local)


def without_tolerations(arm: Arm) -> None:
    for pod in arm.pods:
        del pod["spec"]["tolerations"]


def with_limit(**limits: str) -> Callable[[Arm], None]:
    return lambda arm: arm.by_kind["NodePool"]["spec"]["limits"].update(limits)


def requiring(key: str, value: str) -> Callable[[Arm], None]:
    def change(arm: Arm) -> None:
        requirements = arm.by_kind["NodePool"]["spec"]["template"]["spec"]["requirements"]
        (one,) = [one for one in requirements if one["key"] == key]
        one["values"] = [value]

    return change


def with_two_efa_devices(arm: Arm) -> None:
    for pod in arm.pods:
        resources = pod["spec"]["containers"][0]["resources"]
        for part in ("requests", "limits"):
            resources[part]["vpc.amazonaws.com/efa"] = "2"


def wanting_another_type(arm: Arm) -> None:
    for pod in arm.pods:
        pod["spec"]["nodeSelector"]["node.kubernetes.io/instance-type"] = "g6e.8xlarge"


def with_class(**fields: Any) -> Callable[[Arm], None]:
    return lambda arm: arm.by_kind["EC2NodeClass"]["spec"].update(fields)


def with_a_reservation_that_ended(arm: Arm) -> None:
    with_class(capacityReservationSelectorTerms=[{"id": "cr-0123456789abcdef0"}])(arm)
    requiring("karpenter.sh/capacity-type", "reserved")(arm)


def with_a_missing_class(arm: Arm) -> None:
    arm.by_kind["NodePool"]["spec"]["template"]["spec"]["nodeClassRef"]["name"] = "nobody"


FAULTS: dict[str, tuple[Callable[[Arm], object], str]] = {
    "taint": (without_tolerations,
              "the pod doesn't tolerate the taint nvidia.com/gpu=present:NoSchedule of NodePool {}"),
    "gpus": (with_limit(**{"nvidia.com/gpu": "3"}),
             "NodePool {} may not grow: its limits are nodes: 4, nvidia.com/gpu: 3"),
    "nodes": (with_limit(nodes="0"),
              "NodePool {} may not grow: its limits are nodes: 0, nvidia.com/gpu: 16"),
    "zone": (requiring("topology.kubernetes.io/zone", "us-east-1a"),
             "no instance type fulfils what NodePool {} requires: "),
    "type": (requiring("node.kubernetes.io/instance-type", "g6e.13xlarge"),
             "no instance type fulfils what NodePool {} requires: node.kubernetes.io/instance-type In g6e.13xlarge"),
    "efa": (with_two_efa_devices,
            "no instance type of NodePool {} holds a pod that asks for"),
    "selector": (wanting_another_type,
                 "the pod wants node.kubernetes.io/instance-type g6e.8xlarge, and NodePool {} has g6e.12xlarge"),
    "subnet": (with_class(subnetSelectorTerms=[{"id": "subnet-0123456789abcdef0"}]),
               "EC2NodeClass {} finds no subnet subnet-0123456789abcdef0"),
    "group": (with_class(securityGroupSelectorTerms=[{"id": "sg-0123456789abcdef0"}]),
              "EC2NodeClass {} finds no security group sg-0123456789abcdef0"),
    "placement": (with_class(placementGroupSelector={"name": "nobody"}),
                  "EC2NodeClass {} finds no placement group nobody"),
    "reservation": (with_a_reservation_that_ended,
                    "EC2NodeClass {} finds no active reservation cr-0123456789abcdef0"),
    "class": (with_a_missing_class,
              "NodePool {} launches nodes by EC2NodeClass nobody, which isn't there"),
}  # fmt: skip
"""One change each to the rendered g6e12xl-4x4-efa1, and what its pods are told."""
FAULTY = "g6e12xl-4x4-efa1"
DRAINED, STUCK, RESERVED = "drained", "stuck", "reserved"
JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/topolab/trainjobs"
TRAIN_JOBS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/trainjobs.trainer.kubeflow.org"
DEADLINE_S = 90
"""After the 30 s of boot; the program's own is ten minutes at the least."""
EMPTY_S = 5
"""How long Karpenter leaves an empty node; the program says ten minutes, so that the next arm finds it warm."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("karpenter")
    charts = assemble_charts(folder / "charts", module_path)
    with Children(folder / "logs") as children:
        url = start_cloud(folder, children)
        found = Site(
            folder=folder, tools=tool_folder(), kubeconfig=folder / "kubeconfig", aws_endpoint=url, charts=charts
        )
        found.save()
        yield found, children


@pytest.fixture(scope="module")
def account(site):
    """Through the standard variable, as every other client of the fake cloud finds it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in site[0].environment().items():
            patch.setitem(os.environ, name, value)
        return make_account(boto3.Session(region_name=REGION))


@pytest.fixture(scope="module")
def cluster(site, account) -> Any:
    with start_cluster(*site, pods_complete=False) as found:
        wait_until(lambda: len(found.api.items("/api/v1/nodes")) == len(account.subnets), 30, "a node a zone joined")
        crds = module_path("github.com/kubeflow/trainer/v2") / "manifests/base/crds"
        # The kind alone: what becomes of a TrainJob is told in test_cluster.py.
        found.api.apply(yaml.safe_load((crds / "trainer.kubeflow.org_trainjobs.yaml").read_text()))
        install_karpenter(site[0])
        yield found


@pytest.fixture(scope="module")
def arms(cluster: Cluster, account: KarpenterAccount) -> dict[str, Arm]:
    """All at once, good and bad, so that the 30 s of boot are waited for once; by topology, fault or purpose."""
    made = {name: arm_of(name, account, attempt=1, suffix=str(n)) for n, name in enumerate(gpu_topologies())}
    for number, (fault, (change, _)) in enumerate(FAULTS.items(), start=2):
        made[fault] = arm_of(FAULTY, account, attempt=number, suffix=fault)
        change(made[fault])
    for number, purpose in enumerate((DRAINED, STUCK), start=50):
        made[purpose] = arm_of("g6e8xl-2x1-efa1", account, attempt=number, suffix=purpose)
    reserved = {"mode": "reservation", "id": account.reservation}
    made[RESERVED] = arm_of("g6e8xl-2x1-efa1", account, attempt=60, suffix=RESERVED, capacity=reserved)
    for arm in made.values():
        arm.apply(cluster.api)
    good = [made[name] for name in (*gpu_topologies(), DRAINED, STUCK, RESERVED)]
    wait_until(
        lambda: all(arm.phases(cluster.api) == {"Running"} for arm in good), LAUNCH_S, "the pods of all topologies run"
    )
    return made


@pytest.mark.parametrize("topology", gpu_topologies())
def test_a_topology_gets_the_nodes_that_it_means(cluster, arms, topology):
    arm, meant = arms[topology], parse_topology(topology)
    instance_type = meant.machine.instance_type
    assert instance_type is not None
    nodes, pods = arm.nodes(cluster.api), arm.live_pods(cluster.api)
    labels = [node["metadata"]["labels"] for node in nodes]
    assert len(nodes) == meant.nodes
    assert {one["node.kubernetes.io/instance-type"] for one in labels} == {instance_type.name}
    assert {one["topology.kubernetes.io/zone"] for one in labels} == {ZONE}
    assert {one["karpenter.sh/capacity-type"] for one in labels} == {"on-demand"}
    assert {one["nvidia.com/gpu.present"] for one in labels} == {"true"}
    assert len(pods) == meant.pods
    assert {pod["spec"]["nodeName"] for pod in pods} == {node["metadata"]["name"] for node in nodes}
    # The claim's figures follow from the node class's interfaces; the fake node's from the instance type alone.
    devices = {"nvidia.com/gpu": instance_type.gpus, "vpc.amazonaws.com/efa": instance_type.efa_devices}
    for claim in arm.claims(cluster.api):
        given = claim["status"]["allocatable"]
        assert {name: int(given.get(name, "0")) for name in devices} == devices


def test_a_reservation_is_found_by_its_class_and_asked_of_by_its_claims_alone(cluster, arms, account):
    arm = arms[RESERVED]
    found = cluster.api.get(f"{CLASSES}/{arm.pool}")["status"]["capacityReservations"]
    assert [(one["id"], one["instanceType"], one["availabilityZone"]) for one in found] == [
        (account.reservation, "g6e.8xlarge", ZONE)
    ]
    claims = arm.claims(cluster.api)
    assert len(claims) == 2
    # What kwok launches bears no reservation, whatever it was asked: the node's own label says on-demand here.
    for claim in claims:
        asked = {one["key"]: one["values"] for one in claim["spec"]["requirements"]}
        assert asked["karpenter.sh/capacity-type"] == ["reserved"]
        assert asked["karpenter.k8s.aws/capacity-reservation-id"] == [account.reservation]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_pod_that_gets_no_node_is_told_why(cluster, arms, fault, tmp_path, capsys):
    arm, sentence = arms[fault], FAULTS[fault][1].format(arms[fault].pool)
    stack = tmp_path / "Pulumi.faulty.yaml"
    values = {
        "aws:region": REGION,
        "topolab:topology": FAULTY,
        "topolab:platform": {"zone": ZONE},
        "topolab:run": {"model": "llama-3-8b", "recipe": "auto", "attempt": arm.plan.config.attempt, "steps": 30},
    }
    stack.write_text(yaml.safe_dump({"config": values}))
    words = ["why-pending", str(stack), "--kubeconfig", str(cluster.site.kubeconfig), "--json"]
    assert main(words) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["trainJob"] == arm.plan.job_name
    assert answer["pods"] == {"Pending": 4}
    (finding,) = answer["findings"]
    assert sentence in finding["sentence"]
    assert finding["remedy"]
    assert len(finding["pods"]) == 4
    assert arm.claims(cluster.api) == []


def end_pods(api: Api, arm: Arm) -> None:
    """As the deletion of the TrainJob does, before anything else goes."""
    for pod in arm.live_pods(api):
        api.delete(f"/api/v1/namespaces/topolab/pods/{pod['metadata']['name']}", grace_s=0)
    wait_until(lambda: arm.live_pods(api) == [], 30, f"pods of {arm.pool} are gone")


def delete_pool(api: Api, arm: Arm) -> None:
    """As Pulumi does: in the foreground."""
    api.delete(f"{POOLS}/{arm.pool}", propagationPolicy="Foreground")


def is_gone(api: Api, arm: Arm) -> bool:
    return not (api.exists(f"{POOLS}/{arm.pool}") or arm.claims(api) or arm.nodes(api))


def test_a_deleted_pool_takes_its_nodes_along_and_its_class_can_go(cluster, arms):
    api, arm = cluster.api, arms[DRAINED]
    assert len(arm.nodes(api)) == 2
    end_pods(api, arm)
    delete_pool(api, arm)
    wait_until(lambda: is_gone(api, arm), 60, "the pool and its nodes are gone")
    api.delete(f"{CLASSES}/{arm.pool}")
    wait_until(lambda: not api.exists(f"{CLASSES}/{arm.pool}"), 30, "the class is gone")


def test_a_node_class_waits_for_its_nodes(cluster, arms):
    api, arm = cluster.api, arms[STUCK]
    api.delete(f"{CLASSES}/{arm.pool}")
    with pytest.raises(TimeoutError):
        wait_until(lambda: not api.exists(f"{CLASSES}/{arm.pool}"), 5, "the class is gone")


def test_without_the_controller_a_pool_never_goes_and_with_it_it_does(cluster, arms):
    api, arm = cluster.api, arms[STUCK]
    end_pods(api, arm)
    scale(api, 0)
    delete_pool(api, arm)
    with pytest.raises(TimeoutError):
        wait_until(lambda: is_gone(api, arm), 10, "the pool and its nodes are gone")
    assert len(arm.nodes(api)) == 2
    scale(api, 2)
    wait_until(lambda: is_gone(api, arm), 90, "the pool and its nodes are gone")
    api.delete(f"{CLASSES}/{arm.pool}")
    wait_until(lambda: not api.exists(f"{CLASSES}/{arm.pool}"), 30, "the class is gone")


def scale(api: Api, replicas: int) -> None:
    """The controller's Deployment; back once its pods are as asked."""
    api.patch(DEPLOYMENT, {"spec": {"replicas": replicas}})
    selector = "app.kubernetes.io/name=karpenter"
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    wait_until(lambda: len(api.items(pods, labelSelector=selector)) == replicas, 60, f"{replicas} controllers")


@pytest.fixture(scope="module")
def overdue(cluster: Cluster, account: KarpenterAccount, arms: dict[str, Arm], site) -> Arm:
    """A gang at work on two nodes, whose pods the real Trainer and JobSet made; its deadline comes a little later.

    The last to be asked for: of the other arms' TrainJobs Trainer would make pods too. They go with their kind,
    which Trainer's own chart brings again.
    """
    assert arms
    api = cluster.api
    api.delete(TRAIN_JOBS)
    wait_until(lambda: not api.exists(TRAIN_JOBS), 30, "the kind is gone")
    install_trainer(site[0])
    arm = arm_of("g6e8xl-2x1-efa1", account, attempt=70, suffix="overdue")
    arm.by_kind["NodePool"]["spec"]["disruption"]["consolidateAfter"] = f"{EMPTY_S}s"
    arm.by_kind["TrainJob"]["spec"]["activeDeadlineSeconds"] = DEADLINE_S
    arm.submit(api)
    wait_until(lambda: phases(api, arm) == ["Running"] * 2, DEADLINE_S, "its pods run before the deadline")
    return arm


def phases(api: Api, arm: Arm) -> list[str]:
    return [pod["status"]["phase"] for pod in arm.live_pods(api)]


def test_nodes_of_a_job_that_its_deadline_ended_are_given_back(cluster, overdue):
    api, arm = cluster.api, overdue
    assert len(arm.claims(api)) == len(arm.nodes(api)) == 2
    wait_until(lambda: ended(api, arm) is not None, DEADLINE_S + 30, "the deadline fires")
    assert ended(api, arm) == ("Failed", "DeadlineExceeded")
    wait_until(lambda: "Running" not in phases(api, arm), 60, "its pods are gone")
    wait_until(lambda: arm.claims(api) == arm.nodes(api) == [], 120, "Karpenter gave its nodes back")
    assert api.exists(f"{POOLS}/{arm.pool}")


def ended(api: Api, arm: Arm) -> tuple[str, str] | None:
    """Type and reason of the condition that ended the job."""
    status = api.get(f"{JOBS}/{arm.plan.job_name}").get("status") or {}
    ends = [one for one in status.get("conditions") or () if one["type"] in {"Failed", "Complete"}]
    return next(((one["type"], one["reason"]) for one in ends if one["status"] == "True"), None)
