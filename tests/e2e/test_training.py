"""Training for real: `pulumi up` of a local machine's stack, and runs that are disturbed, on this machine's nodes.

torchrun, DeepSpeed's ZeRO-3 and gloo run in the pods; Trainer, JobSet, Job controller and scheduler made them. The
undisturbed run is Pulumi's; the others are its attempts to come, changed and applied beside it.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.children import wait_until
from tests.e2e.cluster.api import Document
from tests.e2e.cluster.census import census
from tests.e2e.engine.running import Outcome
from tests.e2e.engine.workspace import Workspace
from tests.e2e.kubelet.launch import Kubelet, start_kubelet
from tests.e2e.kubelet.local_stack import STEPS, TOPOLOGY, stack, stack_file
from tests.e2e.kubelet.scene import PODS, Scene, has_ended, phase, runs, runs_here, standing, terminated
from tests.source import ROOT
from workloads.operations.pending.explain import Answer, explain
from workloads.operations.pending.observe import connect, observe
from workloads.planning.plan import NAMESPACE, Plan, plan
from workloads.rendering.bindings import Bindings
from workloads.rendering.manifests import documents

pytestmark = pytest.mark.e2e

STACK = "local"
WITHIN_S = 240.0
"""A machine under load is slow: 20 s on two idle cores."""
CONFIG = "config.json"
LEFT_BY_HELM = ["CustomResourceDefinition/jobsets.jobset.x-k8s.io", "Namespace/kubeflow-system"]
"""Uninstalling takes away neither what lies in a chart's `crds` folder nor the namespace that it made (helm's own
rules). A cluster of EKS goes with them; this one is the user's."""


@dataclass
class Run:
    """One rendered run, to be applied; what a test changes in it stands here."""

    plan: Plan
    documents: list[Document]
    by_kind: dict[str, Document] = field(init=False)

    def __post_init__(self) -> None:
        self.by_kind = {document["kind"]: document for document in self.documents}

    @property
    def name(self) -> str:
        return self.plan.job_name

    @property
    def runtime(self) -> str:
        return str(self.by_kind["ClusterTrainingRuntime"]["metadata"]["name"])

    def rename(self, suffix: str) -> None:
        """Its runtime and its files are others than Pulumi's."""
        for document in self.documents:
            if document["kind"] in {"ConfigMap", "ClusterTrainingRuntime"}:
                document["metadata"]["name"] += suffix
        job = self.by_kind["ClusterTrainingRuntime"]["spec"]["template"]["spec"]["replicatedJobs"][0]
        for volume in job["template"]["spec"]["template"]["spec"]["volumes"]:
            if "configMap" in volume:
                volume["configMap"]["name"] += suffix
        self.by_kind["TrainJob"]["spec"]["runtimeRef"]["name"] += suffix

    def configure(self, **values: Any) -> None:
        """Change the trainer's one file."""
        (map_,) = (one for one in self.documents if CONFIG in one.get("data", {}))
        map_["data"][CONFIG] = json.dumps(json.loads(map_["data"][CONFIG]) | values)


@dataclass(kw_only=True)
class Story:
    """What the user's commands did, and how the run ended."""

    up: Outcome
    again: Outcome
    outputs: dict[str, Any]
    end: Document
    pods: list[Document]
    printed: str


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Iterator[Scene]:
    with standing(tmp_path_factory.mktemp("site"), system_nodes=1) as scene:
        yield scene


@pytest.fixture(scope="module")
def kubelet(scene: Scene) -> Kubelet:
    return start_kubelet(scene.site, scene.children)


@pytest.fixture(scope="module")
def records(scene: Scene) -> Path:
    return scene.site.folder / "records"


@pytest.fixture(scope="module")
def user(scene: Scene, records: Path, installation, tmp_path_factory) -> Iterator[Workspace]:
    """At a shell, with a cluster that is there already."""
    workspace = Workspace(installation, tmp_path_factory.mktemp("workspace"), site=scene.site)
    (workspace.project / f"Pulumi.{STACK}.yaml").write_text(stack_file(records))
    workspace.init(STACK)
    workspace.set_secret(STACK, "kubernetes:kubeconfig", scene.site.kubeconfig.read_text())
    yield workspace
    workspace.reap()


@pytest.fixture(scope="module")
def story(scene: Scene, kubelet: Kubelet, user: Workspace) -> Story:
    """Up, trained, up again. The stack stands for the tests that follow."""
    up = user.up(STACK).must_succeed()
    outputs = user.outputs(STACK)
    end = scene.end_of(outputs["trainJob"], WITHIN_S)
    pods = scene.pods_of(outputs["trainJob"])
    return Story(
        up=up, again=user.up(STACK), outputs=outputs, end=end, pods=pods, printed=printed(kubelet, pods)
    )  # fmt: skip


@pytest.fixture
def another(
    scene: Scene,
    story: Story,  # noqa: ARG001 - its stack brings Trainer
    records: Path,
) -> Iterator[Callable[..., Run]]:
    """Makes a later attempt of the run; it is gone after the test, whatever became of it."""
    made: list[Run] = []

    def of(attempt: int, restarts: int = 0) -> Run:
        planned = plan(stack(records, attempt, restarts), region=None, experiment=STACK, arm=TOPOLOGY)
        run = Run(planned, deepcopy(documents(planned, Bindings.local(records_path=str(records)))))
        run.rename(f"-{attempt}")
        made.append(run)
        return run

    yield of
    for run in made:
        scene.remove(run.name, run.runtime)


def printed(kubelet: Kubelet, pods: list[Document]) -> str:
    names = [pod["metadata"]["name"] for pod in pods]
    return "\n".join(f"==> {name} <==\n{kubelet.log_of(NAMESPACE, name)}" for name in names)


def folders(records: Path, job: str) -> list[Path]:
    """The records of a job, the oldest first."""
    return sorted(path.parent for path in records.glob(f"{job}-*/record.json"))


def losses(folder: Path) -> dict[int, float]:
    lines = (folder / "steps" / "rank-00000.jsonl").read_text().splitlines()
    return {line["step"]: line["loss"] for line in map(json.loads, lines)}


def test_two_pods_train_and_publish_a_record_that_anybody_can_verify(story, records):
    assert story.end["type"] == "Complete", story.printed
    assert [phase(pod) for pod in story.pods] == ["Succeeded", "Succeeded"]
    assert len({pod["spec"]["nodeName"] for pod in story.pods}) == 1
    assert len({pod["status"]["podIP"] for pod in story.pods}) == 2
    assert story.outputs["records"] == records.as_uri()
    (folder,) = folders(records, story.outputs["trainJob"])
    verified = subprocess.run(
        [sys.executable, "-m", "workloads", "verify", folder], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (verified.stdout, verified.returncode) == (f"{folder.name}: VALID, as recorded\n", 0), verified.stderr
    curve = losses(folder)
    assert list(curve) == list(range(1, STEPS + 1))
    assert curve[STEPS] < curve[1]


def test_a_trained_stack_has_nothing_left_to_do(story):
    assert story.up.changes.created
    assert story.again.must_succeed().changes.is_none, story.again.changes.summary()


def test_a_rank_that_fails_fails_the_job_and_its_reason_is_in_the_pods_status(scene, kubelet, another, records):
    run = another(2)
    run.configure(steps=-1)
    scene.apply(run.documents)
    assert scene.end_of(run.name, WITHIN_S)["type"] == "Failed"
    pods = scene.pods_of(run.name)
    told = [terminated(pod).get("message", "") for pod in pods if has_ended(pod)]
    assert any("steps: Input should be greater than" in message for message in told), printed(kubelet, pods)
    said = why_pending(scene.site.kubeconfig, run.name)
    assert said.is_explained
    assert "ended with exit code " in said.findings[0].sentence
    assert "steps: Input should be greater than" in said.findings[0].sentence
    assert folders(records, run.name) == []


def why_pending(kubeconfig: Path, job: str) -> Answer:
    return explain(job, observe(connect(kubeconfig, None), namespace=NAMESPACE, job=job))


def test_an_interrupted_pod_saves_and_the_job_resumes_with_the_losses_of_an_undisturbed_run(
    scene, kubelet, story, another, records
):
    run = another(3, restarts=1)
    scene.apply(run.documents)
    _, second = scene.await_pods(run.name, 2, runs, WITHIN_S)
    wait_until(lambda: steps_done(kubelet, second) > 1, WITHIN_S, "the pod is in mid-run")
    scene.api.delete(f"{PODS}/{second['metadata']['name']}")

    end = scene.end_of(run.name, WITHIN_S)
    assert end["type"] == "Complete", printed(kubelet, scene.pods_of(run.name))
    interrupted, resumed = folders(records, run.name)
    assert record(interrupted)["status"] == "interrupted"
    assert (record(resumed)["status"], record(resumed)["verdict"]["outcome"]) == ("complete", "VALID")
    assert [record(one)["starts"] for one in (interrupted, resumed)] == [1, 2]
    before, after = losses(interrupted), losses(resumed)
    assert 1 < max(before) < min(after) == max(before) + 1
    (undisturbed,) = folders(records, story.outputs["trainJob"])
    assert before | after == losses(undisturbed)
    attempts = {pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] for pod in scene.pods_of(run.name)}
    assert attempts == {"1"}


def test_a_gang_that_never_meets_ends_at_its_deadline_and_leaves_its_node(scene, kubelet, another):
    run = another(4)
    # Both pods must stand on one node, and one of this size leaves no room for the other.
    job = run.by_kind["TrainJob"]["spec"]
    job["trainer"]["resourcesPerNode"]["requests"]["cpu"] = f"{cpu_millis(scene, kubelet.nodes[0]) * 6 // 10}m"
    job["activeDeadlineSeconds"] = 8
    scene.apply(run.documents)
    scene.await_pods(run.name, 1, runs, WITHIN_S)
    wait_until(trains, WITHIN_S, "its launcher runs")
    end = scene.end_of(run.name, WITHIN_S)
    assert (end["type"], end["reason"]) == ("Failed", "DeadlineExceeded")
    wait_until(lambda: not any(map(runs, scene.pods_of(run.name))), WITHIN_S, "its pod has ended")
    wait_until(lambda: not trains(), WITHIN_S, "its node is free")


def test_a_removed_job_takes_its_processes_along(scene, another):
    run = another(5)
    scene.apply(run.documents)
    scene.await_pods(run.name, 2, runs, WITHIN_S)
    wait_until(trains, WITHIN_S, "its launchers run")
    scene.remove(run.name, run.runtime)
    assert not trains()


def test_destroy_leaves_no_pod_no_process_and_the_records(scene, user, story, records):
    """The last: it takes away what the others stand on."""
    outcome = user.destroy(STACK).must_succeed()
    assert "ClusterTrainingRuntime" in str(outcome.changes.deleted)
    assert census(scene.site.kubeconfig) == LEFT_BY_HELM
    assert user.resources(STACK) == []
    assert not trains()
    assert folders(records, story.outputs["trainJob"])


def trains() -> bool:
    """Whether a launcher or a rank of any run lives on this machine."""
    return runs_here("/config/config.json")


def steps_done(kubelet: Kubelet, pod: Document) -> int:
    """Of the rank in this pod, from the file that it writes them to."""
    state = kubelet.folder / "states" / pod["metadata"]["uid"]
    files = list(state.glob("tmp/topolab/records/*/steps/*.jsonl"))
    return sum(file.read_text().count("\n") for file in files)


def record(folder: Path) -> Mapping[str, Any]:
    found: dict[str, Any] = json.loads((folder / "record.json").read_text())
    return found


def cpu_millis(scene: Scene, node: str) -> int:
    cpu: str = scene.api.get(f"/api/v1/nodes/{node}")["status"]["allocatable"]["cpu"]
    return int(cpu.removesuffix("m")) if cpu.endswith("m") else int(cpu) * 1000
