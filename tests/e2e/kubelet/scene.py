"""A cluster with Trainer and no cloud, and what the tests of the pods do with it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.charts.folder import assemble_charts
from tests.e2e.children import Children, wait_until
from tests.e2e.cluster.api import Api, ApiError, Document
from tests.e2e.cluster.cluster import Cluster, start_cluster
from tests.e2e.cluster.trainer import install_trainer
from tests.e2e.site import Site
from tests.e2e.tools import module_path, tool_folder
from workloads.planning.plan import NAMESPACE

TRAIN_JOBS = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{NAMESPACE}/trainjobs"
RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"

_SOON_S = 30.0
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Scene:
    """One cluster, for the tests of one module."""

    site: Site
    children: Children
    cluster: Cluster
    api: Api

    def apply(self, documents: Iterable[Document]) -> None:
        """All of them, in order."""
        for document in documents:
            self.api.apply(document)

    def pods_of(self, train_job: str) -> list[Document]:
        """Its pods by their index."""
        found = self.api.items(PODS, labelSelector=f"jobset.sigs.k8s.io/jobset-name={train_job}")
        return sorted(found, key=index_of)

    def await_pods(
        self, train_job: str, count: int, fit: Callable[[Document], bool], within_s: float
    ) -> list[Document]:
        """Its pods, once there are `count` that `fit`."""
        found: list[Document] = []

        def there() -> bool:
            found[:] = [pod for pod in self.pods_of(train_job) if fit(pod)]
            return len(found) == count

        wait_until(there, within_s, f"{count} pods of {train_job} that {fit.__name__.strip('_')}")
        return found

    def end_of(self, train_job: str, within_s: float) -> Document:
        """The condition that says how it ended: Complete or Failed."""
        ends: list[Document] = []

        def ended() -> bool:
            status = self.api.get(f"{TRAIN_JOBS}/{train_job}").get("status") or {}
            ends[:] = [one for one in status.get("conditions", []) if is_true(one, "Complete", "Failed")]
            return bool(ends)

        wait_until(ended, within_s, f"{train_job} has ended")
        return ends[0]

    def remove(self, train_job: str, runtime: str) -> None:
        """Delete both and wait until nothing of them is left: parts of a runtime can't be changed."""
        self.api.delete(f"{TRAIN_JOBS}/{train_job}")
        wait_until(lambda: not self.pods_of(train_job), _SOON_S, f"no pod of {train_job} is left")
        wait_until(lambda: not self.api.exists(f"{TRAIN_JOBS}/{train_job}"), _SOON_S, f"{train_job} is gone")
        self.api.delete(f"{RUNTIMES}/{runtime}")
        wait_until(lambda: not self.api.exists(f"{RUNTIMES}/{runtime}"), _SOON_S, f"the runtime {runtime} is gone")


@contextmanager
def standing(folder: Path, *, system_nodes: int = 0, trainer: bool = False) -> Iterator[Scene]:
    """A control plane, nodes for controllers, and with `trainer` Trainer and JobSet on them by their chart."""
    site = Site(
        folder=folder,
        tools=tool_folder(),
        kubeconfig=folder / "kubeconfig",
        aws_endpoint="",
        charts=assemble_charts(folder / "charts", module_path),
    )
    with Children(site.logs) as children, start_cluster(site, children, system_nodes=system_nodes) as cluster:
        if trainer:
            install_trainer(site)
        yield Scene(site, children, cluster, cluster.api)


def index_of(pod: Document) -> int:
    """Its place in its Job; 0 where it has none."""
    return int((pod["metadata"].get("labels") or {}).get("batch.kubernetes.io/job-completion-index", 0))


def is_true(condition: Mapping[str, Any], *kinds: str) -> bool:
    """Whether it is one of these, and holds."""
    return condition["type"] in kinds and condition["status"] == "True"


def exists(pod: Document) -> bool:  # noqa: ARG001 - a pod that was found exists
    """Any pod."""
    return True


def runs(pod: Document) -> bool:
    """Its processes run, and nobody wants them to end."""
    return phase(pod) == "Running" and "deletionTimestamp" not in pod["metadata"]


def has_ended(pod: Document) -> bool:
    """One way or the other."""
    return phase(pod) in _ENDED


def phase(pod: Document) -> str:
    """As its status has it."""
    return str((pod.get("status") or {}).get("phase", "Pending"))


def terminated(pod: Document) -> Document:
    """How its one container ended."""
    (status,) = pod["status"]["containerStatuses"]
    found: Document = status["state"]["terminated"]
    return found


def find(api: Api, path: str) -> Document | None:
    """An object, if it is there."""
    try:
        return api.get(path)
    except ApiError as error:
        if error.status != 404:
            raise
        return None


def runs_here(mark: str) -> bool:
    """Whether the command line of a process of this machine holds the mark."""
    return any(mark in line for line in _command_lines())


def _command_lines() -> Iterator[str]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            # It may have ended since it was listed.
            with suppress(OSError):
                yield (entry / "cmdline").read_bytes().decode(errors="replace")
