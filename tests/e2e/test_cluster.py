"""The cluster itself: real control plane, controllers that run where their pods are bound, fake GPU nodes."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.children import wait_until
from tests.e2e.cluster.api import Api, ApiError, Document, Unreachable
from tests.e2e.cluster.census import census
from tests.e2e.cluster.cluster import Cluster
from tests.e2e.cluster.shared import shared_cluster
from tests.e2e.cluster.trainer import NAMESPACE
from tests.plan_factory import bindings_of, planned
from workloads.lab.descendants import descendants
from workloads.rendering.manifests import documents

pytestmark = pytest.mark.e2e

CHECKOUT = Path(__file__).parents[2]
TRAINER, JOBSET = "kubeflow-trainer-controller-manager", "jobset-controller"
JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/topolab/trainjobs"
TOPOLOGY = "g6e12xl-4x4-efa1"
POOL = {"karpenter.sh/nodepool": "gpu-g6e12xl"}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def submit(cluster: Cluster, attempt: int, topology: str = TOPOLOGY) -> str:
    """Apply what the program would apply to a cluster that has nodes already; the TrainJob's name."""
    plan = planned(topology, attempt=attempt)
    wanted = [one for one in documents(plan, bindings_of(plan)) if one["kind"] not in ("NodePool", "EC2NodeClass")]
    for document in wanted:
        cluster.api.apply(document)
    return next(str(one["metadata"]["name"]) for one in wanted if one["kind"] == "TrainJob")


def pods_of(cluster: Cluster, job: str) -> list[Document]:
    return cluster.api.items("/api/v1/namespaces/topolab/pods", labelSelector=f"jobset.sigs.k8s.io/jobset-name={job}")


def bound(cluster: Cluster, job: str, count: int) -> list[Document]:
    """Its pods, once so many run."""
    wait_until(lambda: [p["status"]["phase"] for p in pods_of(cluster, job)] == ["Running"] * count, 60, "pods run")
    return pods_of(cluster, job)


def conditions_of(cluster: Cluster, job: str) -> dict[str, Document]:
    status = cluster.api.get(f"{JOBS}/{job}").get("status") or {}
    return {one["type"]: one for one in status.get("conditions") or () if one["status"] == "True"}


def controller(cluster: Cluster, name: str) -> Document:
    """The one pod of a controller that isn't on its way out."""
    found = [
        pod
        for pod in cluster.api.items(f"/api/v1/namespaces/{NAMESPACE}/pods")
        if pod["metadata"]["name"].startswith(name) and "deletionTimestamp" not in pod["metadata"]
    ]
    assert len(found) == 1
    return found[0]


def is_ready(pod: Document) -> bool:
    return any((one["type"], one["status"]) == ("Ready", "True") for one in pod["status"].get("conditions") or ())


@pytest.fixture(scope="module")
def cluster(pytestconfig, tmp_path_factory):
    return shared_cluster(pytestconfig, tmp_path_factory)


@pytest.fixture(scope="module")
def gpu_cluster(cluster):
    """With four nodes of a pool that Karpenter would make."""
    cluster.add_fake_gpu_nodes("g6e.12xlarge", 4, zone="us-east-1b", labels=POOL, taints=[TAINT])
    return cluster


@pytest.mark.parametrize(("token", "status"), [("", 403), ("made-up", 401)])
def test_strangers_are_refused(cluster, token, status):
    with pytest.raises(ApiError) as refused:
        cluster.api.as_token(token).get("/api/v1/nodes")
    assert refused.value.status == status


def test_a_controller_may_do_what_its_chart_says_and_no_more(cluster):
    pod = controller(cluster, JOBSET)["metadata"]["name"]
    own = Api.of(next((cluster.site.folder / "cluster" / "pods").glob(f"{pod}-*")) / "kubeconfig")
    assert own.items("/apis/jobset.x-k8s.io/v1alpha2/jobsets") is not None
    with pytest.raises(ApiError, match='User "system:serviceaccount:kubeflow-system:jobset-controller" cannot list'):
        own.items("/api/v1/namespaces/default/secrets")


def test_a_train_job_becomes_pods_on_gpu_nodes_and_completes(gpu_cluster):
    job = submit(gpu_cluster, 1)
    pods = bound(gpu_cluster, job, 4)
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == [f"g6e-12xlarge-{index}" for index in range(4)]
    assert gpu_cluster.end_pods("topolab", f"jobset.sigs.k8s.io/jobset-name={job}", "complete")
    wait_until(lambda: "Complete" in conditions_of(gpu_cluster, job), 60, f"{job} is Complete")
    jobset = gpu_cluster.api.get(f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/topolab/jobsets/{job}")
    assert jobset["status"]["terminalState"] == "Completed"


def test_one_failing_pod_fails_the_train_job(gpu_cluster):
    job = submit(gpu_cluster, 2)
    first = bound(gpu_cluster, job, 4)[0]["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]
    selector = f"jobset.sigs.k8s.io/jobset-name={job},batch.kubernetes.io/job-completion-index={first}"
    assert len(gpu_cluster.end_pods("topolab", selector, "fail")) == 1
    wait_until(lambda: "Failed" in conditions_of(gpu_cluster, job), 60, f"{job} is Failed")
    assert "Complete" not in conditions_of(gpu_cluster, job)
    gpu_cluster.api.delete(f"{JOBS}/{job}")
    wait_until(lambda: pods_of(gpu_cluster, job) == [], 30, "its pods are gone")


def test_a_gang_that_lacks_a_node_waits_with_the_schedulers_reason(gpu_cluster):
    job = submit(gpu_cluster, 1, "g6e8xl-4x1-efa1")

    def reasons() -> list[str]:
        conditions = [one for pod in pods_of(gpu_cluster, job) for one in pod["status"].get("conditions") or ()]
        return [one["message"] for one in conditions if one.get("reason") == "Unschedulable"]

    wait_until(lambda: len(reasons()) == 4, 30, "all four pods are refused by the scheduler")
    assert "didn't match Pod's node affinity/selector" in reasons()[0]
    gpu_cluster.api.delete(f"{JOBS}/{job}")


def test_an_unknown_field_is_refused_by_name(cluster):
    document = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "renamed", "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {"mlPolicy": {"torch": {"numProcPerNode": 1}}, "template": {"spec": {"replicatedJobs": []}}},
    }
    with pytest.raises(ApiError, match=re.escape("spec.mlPolicy.torch.numProcPerNode")):
        cluster.api.apply(document)


def test_an_image_without_a_program_waits_with_a_sentence(cluster):
    pods = "/api/v1/namespaces/default/pods"
    pod = {
        "metadata": {"name": "stranger"},
        "spec": {
            "containers": [{"name": "main", "image": "example.com/stranger:1"}],
            "nodeSelector": {"topolab.dev/kubelet": "system"},
        },
    }
    cluster.api.create(pods, pod)

    def waiting() -> Document:
        states = cluster.api.get(f"{pods}/stranger")["status"].get("containerStatuses") or [{}]
        found: Document = states[0].get("state", {}).get("waiting", {})
        return found

    wait_until(lambda: "message" in waiting(), 30, "the kubelet's part says why")
    assert waiting()["reason"] == "ErrImagePull"
    assert "example.com/stranger:1" in waiting()["message"]
    assert "Pod/default/stranger" in census(cluster.site.kubeconfig)
    cluster.api.delete(f"{pods}/stranger")
    wait_until(lambda: not cluster.api.exists(f"{pods}/stranger"), 30, "it is deleted")


def test_a_killed_controller_is_started_again(cluster):
    before = controller(cluster, JOBSET)["status"]["containerStatuses"][0]["restartCount"]
    os.kill(process_of(cluster, "jobset"), signal.SIGKILL)

    def restarted() -> bool:
        pod = controller(cluster, JOBSET)
        return pod["status"]["containerStatuses"][0]["restartCount"] == before + 1 and is_ready(pod)

    wait_until(restarted, 30, "it runs again, Ready")
    last = controller(cluster, JOBSET)["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert last["exitCode"] == 128 + signal.SIGKILL


def process_of(cluster: Cluster, program: str) -> int:
    """Its controller's process."""
    for pid in descendants(os.getpid()):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        folder = Path(f"/proc/{pid}/cwd").resolve()
        if Path(words[0].decode()).name == program and folder.is_relative_to(cluster.site.folder):
            return pid
    raise AssertionError(f"no process of {program}")


def test_without_its_webhook_nothing_is_admitted(cluster):
    scale = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{TRAINER}/scale"
    cluster.api.patch(scale, {"spec": {"replicas": 0}})
    try:
        wait_until(lambda: not any_pod(cluster, TRAINER), 30, "Trainer is gone")
        with pytest.raises(ApiError, match=r"failed calling webhook .* no ready pod behind this Service"):
            submit(cluster, 3)
    finally:
        cluster.api.patch(scale, {"spec": {"replicas": 1}})
        wait_until(lambda: any_pod(cluster, TRAINER, ready=True), 60, "Trainer is back")
    assert unknown_runtime(cluster).startswith('admission webhook "validator.trainjob.trainer.kubeflow.org"')


def any_pod(cluster: Cluster, name: str, *, ready: bool = False) -> bool:
    found = cluster.api.items(f"/api/v1/namespaces/{NAMESPACE}/pods")
    return any(pod["metadata"]["name"].startswith(name) and (is_ready(pod) or not ready) for pod in found)


def unknown_runtime(cluster: Cluster) -> str:
    """What the webhook says of a TrainJob whose runtime isn't there."""
    plan = planned(TOPOLOGY, attempt=9)
    job = next(one for one in documents(plan, bindings_of(plan)) if one["kind"] == "TrainJob")
    job["spec"]["runtimeRef"]["name"] = "nobody"
    with pytest.raises(ApiError) as refused:
        cluster.api.apply(job, dry_run=True)
    return refused.value.message


def test_webhooks_are_still_called_after_a_helm_upgrade(cluster):
    site = cluster.site
    before = controller(cluster, JOBSET)["metadata"]["name"]
    command = [
        site.tools / "helm", "upgrade", "kubeflow-trainer", site.charts / "kubeflow-trainer", "--reuse-values",
        "--set=jobset.controller.resources.requests.cpu=400m", f"--namespace={NAMESPACE}",
        f"--kubeconfig={site.kubeconfig}", "--wait", "--timeout=60s",
    ]  # fmt: skip
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(site.folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert controller(cluster, JOBSET)["metadata"]["name"] != before
    assert "must be created before the TrainJob is created" in unknown_runtime(cluster)


def test_what_was_there_goes_on_after_the_api_server_was_away(gpu_cluster):
    trainer, started = process_of(gpu_cluster, "trainer-controller-manager"), time.monotonic()
    gpu_cluster.stop_api_server()
    try:
        with pytest.raises(Unreachable):
            gpu_cluster.api.get("/api/v1/nodes")
        assert Path(f"/proc/{trainer}").exists(), f"ended within {time.monotonic() - started:.1f} s"
    finally:
        gpu_cluster.start_api_server()
    job = submit(gpu_cluster, 4)
    bound(gpu_cluster, job, 4)
    gpu_cluster.api.delete(f"{JOBS}/{job}")


def test_the_census_names_what_is_installed(cluster):
    found = census(cluster.site.kubeconfig)
    assert f"Namespace/{NAMESPACE}" in found
    assert any(re.fullmatch(rf"HelmRelease/{NAMESPACE}/kubeflow-trainer v\d+ deployed", one) for one in found)
    assert "CustomResourceDefinition/trainjobs.trainer.kubeflow.org" in found
    assert f"Deployment/{NAMESPACE}/{TRAINER}" in found
    assert not any(one.startswith(("Node/", "Namespace/kube-")) for one in found)


def test_control_plane_and_controllers_are_small(cluster):
    used = cluster.resident_mib()
    assert {"etcd", "kube-apiserver", "kwok", "keeper", "jobset", "trainer-controller-manager"} <= used.keys()
    assert sum(used.values()) < 2048


def test_a_killed_starter_leaves_no_child(tmp_path):
    command = [sys.executable, "-m", "tests.e2e.cluster", "--trainer", "--system-nodes=2"]
    # It can't remove its folder, once it is killed.
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=CHECKOUT, env=variables, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        printed = next(line for line in starter.stdout if line.rstrip().endswith("/kubeconfig"))
        assert census(Path(printed.strip())) != []
        below = descendants(starter.pid)
        names = {Path(f"/proc/{pid}/comm").read_text().strip() for pid in below}
        starter.kill()
    assert {"kubebox", "kwok", "jobset"} <= names
    wait_until(lambda: not any(is_alive(pid) for pid in below), 10, "all of them are gone")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
