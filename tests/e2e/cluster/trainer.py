"""Kubeflow Trainer and JobSet in a cluster, installed by helm as the program installs them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.charts.folder import assemble_charts
from tests.e2e.children import Children
from tests.e2e.cluster.cluster import Cluster, start_cluster
from tests.e2e.cluster.helm import helm_install
from tests.e2e.site import Site
from tests.e2e.tools import module_path, tool_folder

NAMESPACE = "kubeflow-system"


@contextmanager
def trainer_cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster without a cloud that runs both; fake pods run until `Cluster.end_pods`."""
    site = Site(
        folder=folder,
        tools=tool_folder(),
        kubeconfig=folder / "kubeconfig",
        aws_endpoint="",
        charts=assemble_charts(folder / "charts", module_path),
    )
    with Children(site.logs) as children, start_cluster(site, children, system_nodes=2, pods_complete=False) as cluster:
        install_trainer(site)
        yield cluster


def install_trainer(site: Site) -> None:
    """With the values of infra/trainer_operator.py."""
    values = ("crds.enabled=true", "jobset.install=true", "runtimes.defaultEnabled=false")
    helm_install(site, "kubeflow-trainer", namespace=NAMESPACE, values=values)
