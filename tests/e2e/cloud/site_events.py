"""What a call to AWS means for the real cluster of the site, for the log."""

from pathlib import Path

from tests.e2e.cloud.wire import Call
from tests.e2e.cluster.census import census
from tests.e2e.operations import Operation
from tests.e2e.site import Site


def site_of(folder: Path) -> Site | None:
    """The site of this folder, once it was written down."""
    path = folder / "site.json"
    return Site.load(path) if path.exists() else None


def of_call(call: Call, site: Site | None) -> list[Operation]:
    """Deleting the cluster counts what is left in it; every other call leaves it alone."""
    if call.key != "eks:DeleteCluster" or site is None or not site.kubeconfig.exists():
        return []
    return [counted(str(call.params["name"]), site.kubeconfig)]


def counted(cluster: str, kubeconfig: Path) -> Operation:
    """The census; where nobody answers, what was said instead, so that no test takes it for an empty cluster."""
    try:
        objects = census(kubeconfig)
    except Exception as error:
        told = {"error": f"{type(error).__name__}: {error}"}
        return Operation(who="cluster", verb="census", subject=cluster, outcome="unreachable", details=told)
    return Operation(who="cluster", verb="census", subject=cluster, details={"objects": objects})
