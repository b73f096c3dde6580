"""What the kubelet says of a pod."""

from datetime import UTC, datetime

import pytest

from tests.e2e.kubelet import phases
from tests.e2e.kubelet.phases import Times
from workloads.lab.pod_program import PodResult

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TIMES = Times(seen=NOON, began=NOON, ended=NOON.replace(hour=13))


def pod(*init, policy="File"):
    container = {"name": "node", "image": "i", "terminationMessagePolicy": policy}
    return {"spec": {"containers": [container], "initContainers": [{"name": name, "image": "i"} for name in init]}}


def state(status, kind="containerStatuses", index=0):
    return status[kind][index]["state"]


def conditions(status):
    return {one["type"]: one["status"] for one in status["conditions"]}


def test_a_pod_that_waits_says_for_what():
    status = phases.waiting(pod(), NOON, "CreateContainerConfigError", "configmaps c isn't there")
    assert (status["phase"], status["startTime"]) == ("Pending", "2026-01-01T12:00:00Z")
    assert state(status) == {"waiting": {"reason": "CreateContainerConfigError", "message": "configmaps c isn't there"}}
    assert conditions(status)["Ready"] == "False"


def test_a_running_pod_is_ready_and_has_its_address():
    status = phases.running(pod(), TIMES, "10.90.0.1")
    assert (status["phase"], status["podIP"], status["podIPs"]) == ("Running", "10.90.0.1", [{"ip": "10.90.0.1"}])
    assert state(status) == {"running": {"startedAt": "2026-01-01T12:00:00Z"}}
    assert set(conditions(status).values()) == {"True"}


def test_a_pod_on_the_loopback_names_no_address():
    assert "podIP" not in phases.running(pod(), TIMES, None)


def test_a_pod_with_init_containers_is_pending_until_its_end():
    status = phases.running(pod("first", "second"), TIMES, "10.90.0.1")
    assert (status["phase"], status["podIP"]) == ("Pending", "10.90.0.1")
    assert "running" in state(status, "initContainerStatuses")
    assert state(status) == {"waiting": {"reason": "PodInitializing"}}


@pytest.mark.parametrize(
    ("result", "phase", "code", "reason"),
    [
        (PodResult(0, "Completed", "node", ""), "Succeeded", 0, "Completed"),
        (PodResult(3, "Error", "node", ""), "Failed", 3, "Error"),
        (PodResult(143, "Error", "node", ""), "Failed", 143, "Error"),
        (PodResult(128, "StartError", "node", "no such program"), "Failed", 128, "StartError"),
        (PodResult(0, "DeadlineExceeded", "node", "too long"), "Failed", 0, "Error"),
    ],
)
def test_an_ended_pod_has_its_code_and_reason(result, phase, code, reason):
    status = phases.ended(pod("init"), TIMES, result, "")
    told = state(status)["terminated"]
    assert (status["phase"], told["exitCode"], told["reason"]) == (phase, code, reason)
    assert told["finishedAt"] == "2026-01-01T13:00:00Z"
    assert state(status, "initContainerStatuses")["terminated"]["reason"] == "Completed"
    assert conditions(status)["Ready"] == "False"


def test_a_deadline_is_the_pods_own_reason():
    status = phases.ended(pod(), TIMES, PodResult(143, "DeadlineExceeded", "node", "too long"), "")
    assert (status["reason"], status["message"]) == ("DeadlineExceeded", "too long")


def test_a_failed_init_container_keeps_those_behind_it_from_starting():
    result = PodResult(2, "InitError", "second", "init container second ended with exit code 2")
    status = phases.ended(pod("first", "second", "third"), TIMES, result, "")
    first, second, third = status["initContainerStatuses"]
    assert first["state"]["terminated"]["reason"] == "Completed"
    assert (second["state"]["terminated"]["exitCode"], second["state"]["terminated"]["reason"]) == (2, "Error")
    assert third["state"] == state(status) == {"waiting": {"reason": "PodInitializing"}}
    assert (status["phase"], conditions(status)["Initialized"]) == ("Failed", "False")


def test_last_words_are_told_where_the_container_asks_for_them():
    result, log = PodResult(1, "Error", "node", ""), "first\nValueError: no\n"
    told = phases.ended(pod(policy="FallbackToLogsOnError"), TIMES, result, log)
    assert state(told)["terminated"]["message"] == log
    assert "message" not in state(phases.ended(pod(), TIMES, result, log))["terminated"]


def test_last_words_are_as_few_as_the_kubelets():
    assert phases.last_words("x\n" * 100) == "x\n" * 80
    assert phases.last_words("a" * 5000) == "a" * 2048
    assert phases.last_words("") == ""


def test_a_pod_that_never_started_says_why():
    result = PodResult(128, "StartError", "node", "pod p: spec.hostPID: the sandbox gives each pod its own; remove it")
    assert state(phases.ended(pod(), TIMES, result, ""))["terminated"]["message"] == result.message
