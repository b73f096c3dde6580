"""The fake cloud's node groups are the cluster's system nodes: controllers live on them, and die with them."""

import os
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.e2e.charts.folder import assemble_charts
from tests.e2e.children import Children, wait_until
from tests.e2e.cloud.ground import make_ground, trust
from tests.e2e.cloud.start import start_cloud
from tests.e2e.cluster.api import Document
from tests.e2e.cluster.cluster import Cluster, start_cluster
from tests.e2e.cluster.trainer import NAMESPACE, install_trainer
from tests.e2e.operations import position, read
from tests.e2e.site import REGION, Site
from tests.e2e.tools import module_path, tool_folder
from workloads.lab.descendants import descendants

pytestmark = pytest.mark.e2e

TRAINER, JOBSET = "kubeflow-trainer-controller-manager", "jobset-controller"
SYSTEM = "topolab.dev/kubelet=system"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A cloud and a control plane; the cluster has no node of its own."""
    folder = tmp_path_factory.mktemp("site")
    charts = assemble_charts(folder / "charts", module_path)
    with Children(folder / "logs") as children:
        url = start_cloud(folder, children)
        site = Site(
            folder=folder, tools=tool_folder(), kubeconfig=folder / "kubeconfig", aws_endpoint=url, charts=charts
        )
        with start_cluster(site, children) as cluster:
            yield cluster


def client(cluster: Cluster, service: str) -> Any:
    make: Any = boto3.client
    return make(
        service,
        endpoint_url=cluster.site.aws_endpoint,
        region_name=REGION,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


@pytest.fixture(scope="module")
def ground(site):
    """An EKS cluster with a node group, Trainer on it, and a role for Trainer's pods alone."""
    ground = make_ground(lambda service: client(site, service))
    assert nodes(site) == []
    ground.up_with_nodes()
    ground.iam.create_role(RoleName="trainer", AssumeRolePolicyDocument=trust("pods.eks.amazonaws.com"))
    ground.eks.create_addon(clusterName="lab", addonName="eks-pod-identity-agent")
    ground.eks.create_pod_identity_association(
        clusterName="lab", namespace=NAMESPACE, serviceAccount=TRAINER, roleArn="arn:aws:iam::123456789012:role/trainer"
    )
    wait_until(lambda: len(nodes(site)) == 2, 30, "both nodes have joined")
    install_trainer(site.site)
    return ground


def nodes(cluster: Cluster) -> list[Document]:
    return cluster.api.items("/api/v1/nodes", labelSelector=SYSTEM)


def processes(cluster: Cluster) -> dict[str, int]:
    """Controllers of this site that run, by program."""
    found = {}
    for pid in descendants(os.getpid()):
        folder = Path(f"/proc/{pid}/cwd")
        if folder.resolve().is_relative_to(cluster.site.folder / "cluster" / "pods"):
            found[Path(f"/proc/{pid}/exe").resolve().name] = pid
    return found


def available(cluster: Cluster, name: str) -> int:
    deployment = cluster.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}")
    return int(deployment["status"].get("availableReplicas", 0))


@pytest.mark.usefixtures("ground")
def test_a_node_group_is_nodes_of_its_type_over_its_zones(site):
    found = nodes(site)
    labels = [node["metadata"]["labels"] for node in found]
    assert sorted(one["topology.kubernetes.io/zone"] for one in labels) == ["us-east-1a", "us-east-1b"]
    assert {one["node.kubernetes.io/instance-type"] for one in labels} == {"m7i.xlarge"}
    assert [node["status"]["capacity"]["cpu"] for node in found] == ["4", "4"]
    assert [node["status"]["capacity"]["memory"] for node in found] == ["16Gi", "16Gi"]


@pytest.mark.usefixtures("ground")
def test_only_an_associated_service_account_gets_credentials(site):
    running = processes(site)
    trainer, jobset = (
        dict(
            entry.split("=", 1)
            for entry in Path(f"/proc/{running[name]}/environ").read_text().split("\0")
            if "=" in entry
        )
        for name in ("trainer-controller-manager", "jobset")
    )
    assert trainer["AWS_ACCESS_KEY_ID"] == "testing"
    assert trainer["AWS_ENDPOINT_URL"] == jobset["AWS_ENDPOINT_URL"] == site.site.aws_endpoint
    assert not {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} & jobset.keys()


def test_controllers_die_with_their_node_group_and_come_back_with_the_next(site, ground):
    before = processes(site)
    assert available(site, JOBSET) == 1
    ground.eks.delete_nodegroup(clusterName="lab", nodegroupName="system")
    wait_until(lambda: nodes(site) == [], 30, "the nodes have left")
    assert processes(site) == {}
    wait_until(lambda: available(site, JOBSET) == 0, 30, "the Deployment says so")
    log = read(site.site.operations)
    left = position(log, who="cluster", verb="left")
    assert position(log, who="aws", verb="DeleteNodegroup") < position(log, who="cluster", verb="stopped") < left

    wait_until(lambda: "system" not in groups(ground), 30, "the group is gone")
    ground.eks.create_nodegroup(**ground.nodes())
    wait_until(lambda: available(site, JOBSET) == 1, 60, "it is available again")
    assert processes(site)["jobset"] != before["jobset"]


def groups(ground) -> list[str]:
    found: list[str] = ground.eks.list_nodegroups(clusterName="lab")["nodegroups"]
    if found:
        # A look at a group that is going lets the fake account go on.
        ground.eks.describe_nodegroup(clusterName="lab", nodegroupName=found[0])
    return found
