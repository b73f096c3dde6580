"""One whole site, standing: charts, fake cloud, real cluster; used by test after test, and begun anew for each."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.e2e.charts.folder import assemble_charts
from tests.e2e.children import Children, wait_until
from tests.e2e.cloud.inventory import inventory
from tests.e2e.cloud.start import reset_cloud, start_cloud
from tests.e2e.cluster.api import Api, Unreachable
from tests.e2e.cluster.census import census
from tests.e2e.cluster.cluster import Cluster, start_cluster
from tests.e2e.faults import Fault, faults_met, plan_faults
from tests.e2e.kubelet.launch import Kubelet, start_kubelet
from tests.e2e.operations import Operation, read
from tests.e2e.site import Site
from tests.e2e.tools import module_path

KEPT = frozenset({"s3:bucket"})
"""What stays in the account by choice: the records."""

HELMS = {
    "CustomResourceDefinition/jobsets.jobset.x-k8s.io": (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/jobsets.jobset.x-k8s.io"
    ),
    "Namespace/kubeflow-system": "/api/v1/namespaces/kubeflow-system",
}
"""What helm leaves in a cluster by its own rules, and its path: a chart's `crds/`, a namespace that it made."""
_SWEPT_S = 20.0


class Standing:
    """A fake account and a real control plane that belong together. Made by `open_site`, from the main thread."""

    def __init__(self, folder: Path, tools: Path) -> None:
        self._folder, self._tools = folder, tools
        self._times = 0
        self._parts = ExitStack()
        self._first_operation = 0
        self._kubelet: Kubelet | None = None
        self.site: Site
        self.children: Children
        self.cluster: Cluster
        self._start()

    @property
    def api(self) -> Api:
        """The API server, as its admin."""
        return self.cluster.api

    def begin(self) -> None:
        """An empty account and an empty cluster for the next test, whatever the last one left; no faults."""
        if not self._is_empty():
            self.close()
            self._start()
        reset_cloud(self.site.aws_endpoint)
        self.faults()
        self._first_operation = len(read(self.site.operations))

    def inventory(self) -> dict[str, list[str]]:
        """Ids of what stands in the account, by kind."""
        return inventory(self.site.aws_endpoint)

    def left(self) -> dict[str, list[str]]:
        """The same without what is kept by choice."""
        return {kind: found for kind, found in self.inventory().items() if kind not in KEPT}

    def census(self) -> list[str]:
        """Kind/namespace/name of what stands in the cluster and that a bare one has not."""
        return census(self.site.kubeconfig)

    def operations(self) -> list[Operation]:
        """What was done since `begin`, in order."""
        return read(self.site.operations)[self._first_operation :]

    def faults(self, *faults: Fault) -> None:
        """Replace all faults to come."""
        plan_faults(self.site.faults, faults)

    def faults_met(self) -> int:
        """How many operations met one of these faults."""
        return faults_met(self.site.faults)

    def kubelet(self) -> Kubelet:
        """The process kubelet, started when first asked for."""
        if self._kubelet is None:
            self._kubelet = start_kubelet(self.site, self.children)
        return self._kubelet

    def resident_mib(self) -> float:
        """Memory of control plane and controllers."""
        return sum(self.cluster.resident_mib().values())

    def close(self) -> None:
        """End all its processes."""
        self._parts.close()
        self._kubelet = None

    def _start(self) -> None:
        self._times += 1
        folder = self._folder / f"site-{self._times}"
        folder.mkdir(parents=True)
        with ExitStack() as parts:
            self.children = parts.enter_context(Children(folder / "logs"))
            self.site = Site(
                folder=folder,
                tools=self._tools,
                kubeconfig=folder / "kubeconfig",
                aws_endpoint=start_cloud(folder, self.children),
                charts=assemble_charts(folder / "charts", module_path),
            )
            self.site.save()
            self.cluster = parts.enter_context(start_cluster(self.site, self.children))
            self._parts = parts.pop_all()

    def _is_empty(self) -> bool:
        """Nothing is left; False where the last test took the API server away for good."""
        try:
            self._sweep()
            return not (self.left() or self.census() or self._nodes())
        except Unreachable:
            return False

    def _sweep(self) -> None:
        """Take away what helm left, where nothing else is left."""
        found = self.census()
        if self.left() or not HELMS.keys() >= set(found):
            return
        for one in found:
            self.api.delete(HELMS[one])
        with suppress(TimeoutError):
            wait_until(lambda: not self.census(), _SWEPT_S, "what helm left is gone")

    def _nodes(self) -> Sequence[str]:
        """Nodes apart from the process kubelet's, which stay."""
        own = () if self._kubelet is None else self._kubelet.nodes
        found = [str(node["metadata"]["name"]) for node in self.api.items("/api/v1/nodes")]
        return [name for name in found if name not in own]


@contextmanager
def open_site(folder: Path, tools: Path) -> Iterator[Standing]:
    """Start everything in this folder; all of it has ended afterwards."""
    standing = Standing(folder, tools)
    try:
        yield standing
    finally:
        standing.close()
