"""Training for real: a TrainJob of two pods on this machine, from the real controllers to the published record.

torchrun, DeepSpeed's ZeRO-3 and gloo run in the pods; Trainer, JobSet, Job controller and scheduler made them.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.children import wait_until
from tests.e2e.cluster.api import Document
from tests.e2e.kubelet.launch import Kubelet, start_kubelet
from tests.e2e.kubelet.scene import PODS, Scene, has_ended, phase, runs, runs_here, standing, terminated
from tests.plan_factory import planned
from tests.source import ROOT
from workloads.planning.plan import NAMESPACE, Plan
from workloads.rendering.bindings import Bindings
from workloads.rendering.manifests import documents

pytestmark = pytest.mark.e2e

TOPOLOGY = "cpu-2x1-tcp"
STEPS = 40
WITHIN_S = 240.0
"""A machine under load is slow: 20 s on two idle cores."""
CONFIG = "config.json"


@dataclass
class Run:
    """One rendered run, to be applied; what a test changes in it stands here."""

    plan: Plan
    documents: list[Document]
    records: Path
    by_kind: dict[str, Document] = field(init=False)
    pods: list[Document] = field(default_factory=list)
    """As they were at its end."""

    def __post_init__(self) -> None:
        self.by_kind = {document["kind"]: document for document in self.documents}

    @property
    def name(self) -> str:
        return self.plan.job_name

    def configure(self, **values: Any) -> None:
        """Change the trainer's one file."""
        (map_,) = (one for one in self.documents if CONFIG in one.get("data", {}))
        map_["data"][CONFIG] = json.dumps(json.loads(map_["data"][CONFIG]) | values)

    def folders(self) -> list[Path]:
        """Its records, the oldest first."""
        return sorted(path.parent for path in self.records.glob(f"{self.name}-*/record.json"))


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    with standing(tmp_path_factory.mktemp("site")) as scene:
        yield scene


@pytest.fixture(scope="module")
def kubelet(scene: Scene) -> Kubelet:
    return start_kubelet(scene.site, scene.children)


def run_of(scene: Scene, attempt: int) -> Run:
    records = scene.site.folder / "records"
    plan = planned(TOPOLOGY, globalBatchTokens=1024, sequenceLength=128, steps=STEPS, warmupSteps=5, attempt=attempt)
    return Run(plan, deepcopy(documents(plan, Bindings.local(records_path=str(records)))), records)


def what_they_printed(scene: Scene, kubelet: Kubelet, run: Run) -> str:
    names = [pod["metadata"]["name"] for pod in scene.pods_of(run.name)]
    return "\n".join(f"==> {name} <==\n{kubelet.log_of(NAMESPACE, name)}" for name in names)


@pytest.fixture(scope="module")
def trained(scene: Scene, kubelet: Kubelet) -> Run:
    """A run that nobody disturbed."""
    run = run_of(scene, 1)
    scene.apply(run.documents)
    end = scene.end_of(run.name, WITHIN_S)
    assert end["type"] == "Complete", what_they_printed(scene, kubelet, run)
    run.pods = scene.pods_of(run.name)
    scene.remove(run.name, TOPOLOGY)
    return run


def losses(folder: Path) -> dict[int, float]:
    lines = (folder / "steps" / "rank-00000.jsonl").read_text().splitlines()
    return {line["step"]: line["loss"] for line in map(json.loads, lines)}


def test_two_pods_train_and_publish_a_record_that_anybody_can_verify(trained):
    pods = trained.pods
    assert [phase(pod) for pod in pods] == ["Succeeded", "Succeeded"]
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 1
    assert len({pod["status"]["podIP"] for pod in pods}) == 2
    (folder,) = trained.folders()
    verified = subprocess.run(
        [sys.executable, "-m", "workloads", "verify", folder], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (verified.stdout, verified.returncode) == (f"{folder.name}: VALID, as recorded\n", 0), verified.stderr
    curve = losses(folder)
    assert list(curve) == list(range(1, STEPS + 1))
    assert curve[STEPS] < curve[1]


def test_a_rank_that_fails_fails_the_job_and_its_reason_is_in_the_pods_status(scene, kubelet):
    run = run_of(scene, 2)
    run.configure(steps=-1)
    scene.apply(run.documents)
    end = scene.end_of(run.name, WITHIN_S)
    assert end["type"] == "Failed"
    ended = [pod for pod in scene.pods_of(run.name) if has_ended(pod)]
    told = [terminated(pod).get("message", "") for pod in ended]
    assert any("steps" in message and "-1" in message for message in told), what_they_printed(scene, kubelet, run)
    scene.remove(run.name, TOPOLOGY)
    assert run.folders() == []


def test_an_interrupted_pod_saves_and_the_job_resumes_with_the_losses_of_an_undisturbed_run(scene, kubelet, trained):
    run = run_of(scene, 3)
    # Checkpoints outlive the pods beside their records, and JobSet may start the pods over once.
    run.configure(resume=True)
    run.by_kind["ClusterTrainingRuntime"]["spec"]["template"]["spec"]["failurePolicy"]["maxRestarts"] = 1
    checkpoints = {"name": "TOPOLAB_CHECKPOINTS", "value": "/records/checkpoints"}
    run.by_kind["TrainJob"]["spec"]["trainer"]["env"].append(checkpoints)
    scene.apply(run.documents)
    _, second = scene.await_pods(run.name, 2, runs, WITHIN_S)
    wait_until(lambda: steps_done(kubelet, second) > 1, WITHIN_S, "the pod is in mid-run")
    scene.api.delete(f"{PODS}/{second['metadata']['name']}")

    end = scene.end_of(run.name, WITHIN_S)
    assert end["type"] == "Complete", what_they_printed(scene, kubelet, run)
    interrupted, resumed = run.folders()
    assert record(interrupted)["status"] == "interrupted"
    assert (record(resumed)["status"], record(resumed)["verdict"]["outcome"]) == ("complete", "VALID")
    before, after = losses(interrupted), losses(resumed)
    assert 1 < max(before) < min(after) == max(before) + 1
    assert before | after == losses(trained.folders()[0])
    attempts = {pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] for pod in scene.pods_of(run.name)}
    assert attempts == {"1"}
    scene.remove(run.name, TOPOLOGY)


def test_a_gang_that_never_meets_ends_at_its_deadline_and_leaves_its_node(scene, kubelet):
    run = run_of(scene, 4)
    # Both pods must stand on one node, and one of this size leaves no room for the other.
    job = run.by_kind["TrainJob"]["spec"]
    job["trainer"]["resourcesPerNode"]["requests"]["cpu"] = f"{cpu_millis(scene, kubelet.nodes[0]) * 6 // 10}m"
    job["activeDeadlineSeconds"] = 8
    scene.apply(run.documents)
    (alone,) = scene.await_pods(run.name, 1, runs, WITHIN_S)
    wait_until(trains, WITHIN_S, "its launcher runs")
    end = scene.end_of(run.name, WITHIN_S)
    assert (end["type"], end["reason"]) == ("Failed", "DeadlineExceeded")
    wait_until(lambda: not any(map(runs, scene.pods_of(run.name))), WITHIN_S, "its pod has ended")
    wait_until(lambda: not trains(), WITHIN_S, "its node is free")
    assert alone["spec"]["nodeName"] in kubelet.nodes
    scene.remove(run.name, TOPOLOGY)


@pytest.mark.usefixtures("kubelet")
def test_a_removed_job_takes_its_processes_along(scene):
    run = run_of(scene, 5)
    scene.apply(run.documents)
    scene.await_pods(run.name, 2, runs, WITHIN_S)
    wait_until(trains, WITHIN_S, "its launchers run")
    scene.remove(run.name, TOPOLOGY)
    assert not trains()


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
