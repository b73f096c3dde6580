"""Charts of the site, installed by the real helm."""

import subprocess
from collections.abc import Sequence

from tests.e2e.cluster.api import Api
from tests.e2e.site import Site

_READY_S = 120


def helm_install(
    site: Site, chart: str, *, namespace: str, values: Sequence[str] = (), flags: Sequence[str] = ()
) -> None:
    """`helm install --wait` of a chart under its own name. RuntimeError with helm's own words."""
    command = [
        site.tools / "helm",
        "install",
        chart,
        site.charts / chart,
        f"--kubeconfig={site.kubeconfig}",
        f"--namespace={namespace}",
        "--create-namespace",
        "--wait",
        f"--timeout={_READY_S}s",
        *(f"--set={value}" for value in values),
        *flags,
    ]
    done = subprocess.run(
        [str(word) for word in command],
        env={"PATH": "/usr/bin:/bin", "HOME": str(site.folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pods = Api.of(site.kubeconfig).items(f"/api/v1/namespaces/{namespace}/pods")
        states = [pod["status"].get("containerStatuses") or pod["status"].get("conditions") for pod in pods]
        raise RuntimeError(f"helm install {chart}: {done.stderr.strip()}; pods: {states}")
