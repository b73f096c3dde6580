"""Kubeflow Trainer and JobSet in a cluster, installed by helm as the program installs them."""

import subprocess

from tests.e2e.cluster.api import Api
from tests.e2e.site import Site

NAMESPACE = "kubeflow-system"
_READY_S = 120


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
