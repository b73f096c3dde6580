"""Kubeflow Trainer and JobSet in a cluster, installed by helm as the program installs them."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.charts.folder import assemble_charts
from tests.e2e.children import Children
from tests.e2e.cluster.api import Api
from tests.e2e.cluster.cluster import Cluster, start_cluster
from tests.e2e.site import Site
from tests.e2e.tools import module_path, tool_folder

NAMESPACE = "kubeflow-system"
_READY_S = 120


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
    """`helm install --wait`, with the values of infra/trainer_operator.py. RuntimeError with helm's own words."""
    values = ("crds.enabled=true", "jobset.install=true", "runtimes.defaultEnabled=false")
    command = [
        site.tools / "helm",
        "install",
        "kubeflow-trainer",
        site.charts / "kubeflow-trainer",
        f"--kubeconfig={site.kubeconfig}",
        f"--namespace={NAMESPACE}",
        "--create-namespace",
        "--wait",
        f"--timeout={_READY_S}s",
        *(f"--set={value}" for value in values),
    ]
    done = subprocess.run(
        [str(word) for word in command],
        env={"PATH": "/usr/bin:/bin", "HOME": str(site.folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pods = Api.of(site.kubeconfig).items(f"/api/v1/namespaces/{NAMESPACE}/pods")
        states = [pod["status"].get("containerStatuses") or pod["status"].get("conditions") for pod in pods]
        raise RuntimeError(f"helm install kubeflow-trainer: {done.stderr.strip()}; pods: {states}")
