"""Pods that the real scheduler binds to this machine run here, and the API server hears what becomes of them."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.children import wait_until
from tests.e2e.cluster.api import Document
from tests.e2e.kubelet.ground import Ground, Standing
from tests.e2e.kubelet.launch import CHILD, Kubelet, start_kubelet
from tests.e2e.kubelet.scene import Scene, find, has_ended, phase, runs_here, standing, terminated
from workloads.lab.documents import References
from workloads.lab.links import PodLink
from workloads.lab.pod_program import Surroundings

pytestmark = pytest.mark.e2e

SPACE = "pods"
PATH = f"/api/v1/namespaces/{SPACE}/pods"
WITHIN_S = 30.0

WAITS = "import signal, time\nprint('waits', flush=True)\nsignal.pause()"


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    with standing(tmp_path_factory.mktemp("site")) as scene:
        scene.api.create("/api/v1/namespaces", {"metadata": {"name": SPACE}})
        account = f"/api/v1/namespaces/{SPACE}/serviceaccounts/default"
        wait_until(lambda: find(scene.api, account) is not None, WITHIN_S, "the namespace's own service account")
        yield scene


@pytest.fixture(scope="module")
def first_kubelet(scene: Scene) -> Kubelet:
    return start_kubelet(scene.site, scene.children, interpreter=Path(sys.executable))


@pytest.fixture
def kubelet(scene: Scene, first_kubelet: Kubelet):
    """The one of all tests; their pods are gone after each."""
    yield first_kubelet
    for pod in scene.api.items(PATH):
        scene.api.delete(f"{PATH}/{pod['metadata']['name']}", grace_s=0)
    wait_until(lambda: not scene.api.items(PATH), WITHIN_S, "the test's pods are gone")
    states = first_kubelet.folder / "states"
    wait_until(lambda: not list(states.iterdir()), WITHIN_S, "the pods' folders are gone")


def pod(name: str, script: str, /, **spec: Any) -> Document:
    """A pod of one Python script for this machine's nodes; `container` and `spec` patch it."""
    container = {"name": "node", "image": "local/python", "command": ["python", "-u", "-c", script]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": {"topolab.dev/kubelet": "process"},
            "containers": [container | spec.pop("container", {})],
            **spec,
        },
    }


def start(scene: Scene, *pods: Document) -> None:
    for one in pods:
        scene.api.create(PATH, one)


def seen(scene: Scene, name: str) -> Document:
    return scene.api.get(f"{PATH}/{name}")


def ended(scene: Scene, name: str) -> Document:
    wait_until(lambda: has_ended(seen(scene, name)), WITHIN_S, f"{name} has ended")
    return seen(scene, name)


def says(kubelet: Kubelet, name: str, word: str) -> None:
    wait_until(lambda: word in kubelet.log_of(SPACE, name), WITHIN_S, f"{name} says {word!r}")


def test_a_pod_sees_its_variables_files_and_folders(scene, kubelet):
    meta = {"namespace": SPACE, "name": "given"}
    scene.api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"file": "text", "key": "map"}})
    scene.api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"token": "hidden"}})
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("config", "memory", "scratch")]
    script = """
import os
print(*(os.environ[name] for name in ("NODE", "INDEX", "MAP", "TOKEN", "JOINED")))
print(open("/config/file").read(), open("/scratch/from-init").read(), os.statvfs("/memory").f_blocks)
print(sorted(os.listdir("/config")))
"""
    env = [
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['index']"}}},
        {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "given", "key": "key"}}},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "given", "key": "token"}}},
        {"name": "JOINED", "value": "$(MAP)-$(INDEX)-$(NOT)"},
    ]
    subject = pod(
        "sees",
        script,
        container={"env": env, "volumeMounts": mounts},
        initContainers=[
            {
                "name": "init", "image": "local/python", "volumeMounts": mounts,
                "command": ["python", "-c", "open('/scratch/from-init', 'w').write('made')"],
            }
        ],
        volumes=[
            {"name": "config", "configMap": {"name": "given"}},
            {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
            {"name": "scratch", "emptyDir": {}},
        ],
    )  # fmt: skip
    subject["metadata"]["labels"] = {"index": "7"}
    start(scene, subject)
    last = ended(scene, "sees")
    assert phase(last) == "Succeeded", kubelet.log_of(SPACE, "sees")
    node = last["spec"]["nodeName"]
    assert node in kubelet.nodes
    blocks = 16 * 2**20 // os.sysconf("SC_PAGE_SIZE")
    assert kubelet.log_of(SPACE, "sees").splitlines() == [
        f"{node} 7 map hidden map-7-$(NOT)",
        f"text made {blocks}",
        "['file', 'key']",
    ]
    (init,) = last["status"]["initContainerStatuses"]
    assert (init["state"]["terminated"]["reason"], terminated(last)["reason"]) == ("Completed", "Completed")


def test_a_failed_pod_tells_its_code_and_its_last_words(scene, kubelet):
    script = "import sys; sys.exit('ValueError: config.steps is 0')"
    start(scene, pod("fails", script, container={"terminationMessagePolicy": "FallbackToLogsOnError"}))
    last = ended(scene, "fails")
    told = terminated(last)
    assert (phase(last), told["exitCode"], told["reason"]) == ("Failed", 1, "Error")
    assert told["message"] == kubelet.log_of(SPACE, "fails") == "ValueError: config.steps is 0\n"


def test_a_failed_init_container_ends_the_pod(scene, kubelet):
    init = {"name": "check", "image": "local/python", "command": ["python", "-c", "import sys; sys.exit(4)"]}
    start(scene, pod("checked", "print('never')", initContainers=[init]))
    last = ended(scene, "checked")
    (status,) = last["status"]["initContainerStatuses"]
    assert (phase(last), status["state"]["terminated"]["exitCode"]) == ("Failed", 4)
    assert "never" not in kubelet.log_of(SPACE, "checked")


@pytest.mark.usefixtures("kubelet")
def test_what_the_sandbox_cannot_honour_fails_with_its_sentence(scene):
    start(scene, pod("privileged", "pass", container={"securityContext": {"privileged": True}}))
    told = terminated(ended(scene, "privileged"))
    assert (told["exitCode"], told["reason"]) == (128, "StartError")
    assert told["message"].endswith("securityContext.privileged: the sandbox gives no privileges; remove it")


@pytest.mark.usefixtures("kubelet")
def test_a_pod_that_would_be_started_over_and_over_waits_with_its_sentence(scene):
    start(scene, pod("service", "pass", restartPolicy="Always"))

    def told() -> str:
        (status,) = seen(scene, "service")["status"].get("containerStatuses") or [{"state": {}}]
        return str(status["state"].get("waiting", {}).get("message", ""))

    wait_until(lambda: "the sandbox runs a pod once, which is `Never`" in told(), WITHIN_S, "it says why it waits")
    assert phase(seen(scene, "service")) == "Pending"


def test_a_pod_finds_a_peer_that_comes_later_and_loses_it_when_it_goes(scene, kubelet):
    finds = """
import socket, time
def known():
    try:
        return socket.gethostbyname("late.job")
    except OSError:
        return None
print("looks", known())
while not known(): time.sleep(0.05)
while True:
    try:
        connection = socket.create_connection(("late.job", 29500), timeout=5); break
    except ConnectionRefusedError: time.sleep(0.05)
print("found", connection.recv(10).decode())
while known(): time.sleep(0.05)
print("lost")
"""
    answers = "import socket\nwith socket.create_server(('0.0.0.0', 29500)) as s: s.accept()[0].sendall(b'hello')"
    start(scene, pod("early", finds, hostname="early", subdomain="job"))
    says(kubelet, "early", "looks None")
    start(scene, pod("late-x7", answers, hostname="late", subdomain="job"))
    address = ended(scene, "late-x7")["status"]["podIP"]
    assert address.startswith("10.90.")
    assert phase(ended(scene, "early")) == "Succeeded"
    assert kubelet.log_of(SPACE, "early").splitlines() == ["looks None", "found hello", "lost"]


def test_a_deleted_pod_may_end_in_order_within_its_grace(scene, kubelet):
    saves = """
import signal, sys, time
def save(*_):
    time.sleep(0.5); print("saved"); sys.exit(143)
signal.signal(signal.SIGTERM, save)
print("waits")
while True: signal.pause()
"""
    start(scene, pod("saves", saves, terminationGracePeriodSeconds=20))
    says(kubelet, "saves", "waits")
    scene.api.delete(f"{PATH}/saves")
    wait_until(lambda: find(scene.api, f"{PATH}/saves") is None, WITHIN_S, "the pod is gone")
    assert kubelet.log_of(SPACE, "saves").splitlines() == ["waits", "saved"]


def test_a_deleted_pod_that_does_not_listen_is_killed_after_its_grace(scene, kubelet):
    deaf = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('waits')\nwhile True: time.sleep(9)"
    )
    start(scene, pod("deaf", deaf, terminationGracePeriodSeconds=1))
    says(kubelet, "deaf", "waits")
    scene.api.delete(f"{PATH}/deaf")
    took = wait_until(lambda: find(scene.api, f"{PATH}/deaf") is None, WITHIN_S, "the pod is gone")
    assert took > 0.9
    assert not runs_here("deaf-to-terms")


def test_a_pod_deleted_by_force_ends_although_nobody_is_told(scene, kubelet):
    start(scene, pod("forced", f"# forced-to-end\n{WAITS}"))
    says(kubelet, "forced", "waits")
    scene.api.delete(f"{PATH}/forced", grace_s=0)
    wait_until(lambda: not runs_here("forced-to-end"), WITHIN_S, "its process is gone")


@pytest.mark.usefixtures("kubelet")
def test_a_pod_over_its_deadline_fails(scene):
    start(scene, pod("overdue", WAITS, activeDeadlineSeconds=1, terminationGracePeriodSeconds=1))
    last = ended(scene, "overdue")
    assert (phase(last), last["status"]["reason"]) == ("Failed", "DeadlineExceeded")


def test_a_pod_waits_for_what_it_names(scene, kubelet):
    entry = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "later", "key": "a"}}}
    start(scene, pod("patient", "import os; print(os.environ['A'])", container={"env": [entry]}))

    def waiting() -> Document:
        (status,) = seen(scene, "patient")["status"].get("containerStatuses") or [{"state": {}}]
        found: Document = status["state"].get("waiting") or {}
        return found

    wait_until(lambda: waiting().get("reason") == "CreateContainerConfigError", WITHIN_S, "it says what it misses")
    assert waiting()["message"] == "configmaps later isn't there"
    meta = {"namespace": SPACE, "name": "later"}
    scene.api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "came"}})
    assert phase(ended(scene, "patient")) == "Succeeded"
    assert kubelet.log_of(SPACE, "patient") == "came\n"


def test_a_pod_runs_on_and_is_told_of_when_the_api_server_comes_back(scene, kubelet):
    start(scene, pod("slow", "import time; print('waits'); time.sleep(2); print('done')"))
    says(kubelet, "slow", "waits")
    scene.cluster.stop_api_server()
    says(kubelet, "slow", "done")
    scene.cluster.start_api_server()
    assert phase(ended(scene, "slow")) == "Succeeded"


def test_a_killed_kubelet_takes_its_pods_along_and_the_next_one_says_so(scene, kubelet):
    start(
        scene,
        pod("orphan", f"# orphan-to-be\n{WAITS}", container={"terminationMessagePolicy": "FallbackToLogsOnError"}),
    )
    says(kubelet, "orphan", "waits")
    wait_until(lambda: phase(seen(scene, "orphan")) == "Running", WITHIN_S, "it is told to run")
    assert runs_here("orphan-to-be")
    os.kill(scene.children[CHILD].process.pid, signal.SIGKILL)
    wait_until(lambda: not runs_here("orphan-to-be"), WITHIN_S, "its pod is gone")
    start_kubelet(scene.site, scene.children, interpreter=Path(sys.executable))
    last = ended(scene, "orphan")
    assert (phase(last), terminated(last)["exitCode"]) == ("Failed", 137)
    assert terminated(last)["message"] == "its kubelet ended before it did\n"


def test_pods_on_the_loopback_meet_on_one_port(tmp_path):
    script = "import os; print(os.environ['PET_MASTER_ADDR'], os.environ['PET_MASTER_PORT'])"
    env = [{"name": "PET_MASTER_ADDR", "value": "first.job"}, {"name": "PET_MASTER_PORT", "value": "29500"}]
    pods = [pod(name, script, container={"env": env}, hostname=name, subdomain="job") for name in ("first", "second")]
    with Ground(namespaces=False) as ground:
        standings = [_started(ground, one, tmp_path / one["metadata"]["name"]) for one in pods]
        assert [standing.running.wait(WITHIN_S).exit_code for standing in standings] == [0, 0]
        assert [standing.address for standing in standings] == [None, None]
    first, second = ((tmp_path / one["metadata"]["name"] / "log").read_text() for one in pods)
    assert first == second
    assert first.startswith("127.0.0.1 ")


def _started(ground: Ground, pod: Document, state: Path) -> Standing:
    pod["metadata"]["uid"] = pod["metadata"]["name"]
    state.mkdir()

    def bare(link: PodLink | None, hosts: str) -> Surroundings:
        return Surroundings(
            state=state,
            log=state / "log",
            references=References({}, {}, {}),
            link=link,
            hosts=hosts,
            interpreter=Path(sys.executable),
            environment={},
        )

    return ground.start(pod, bare)
