import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.lab.scene import EVERYWHERE, LOOPBACK, USER, arm, log, pod, rights_name
from workloads.lab.arm import LAST_LINES, Bench, run_arm
from workloads.lab.capability import Capability
from workloads.lab.events import Event, PodExited, PodPrinted, PodStarted

LIMIT_S = 20.0
ROOT_FOLDER = Path(__file__).parents[3]

# A lab of two pods that each start a child in a session of its own, and print when both run.
LAB = """
import sys
from pathlib import Path
from tests.workloads.lab.scene import LOOPBACK, USER, arm, pod
SCRIPT = '''
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)", sys.argv[1]], start_new_session=True)
print("up", flush=True)
time.sleep(300)
'''
try:
    pods = [pod(f"p-{index}", SCRIPT, sys.argv[2]) for index in range(2)]
    arm(pods, Path(sys.argv[1]), USER if sys.argv[3] == "user" else LOOPBACK)
except KeyboardInterrupt:
    sys.exit(130)
"""


def _processes(mark: str) -> list[int]:
    """Processes whose command line holds the mark, on this machine."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "cmdline").read_text():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _wait_for(condition: Any) -> None:
    limit = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def _running_lab(out: Path, mark: str, rights: str, scratch: Path) -> subprocess.Popen[bytes]:
    lab = subprocess.Popen(
        [sys.executable, "-c", LAB, str(out), mark, rights],
        cwd=ROOT_FOLDER,
        env={**os.environ, "TMPDIR": str(scratch)},
        start_new_session=True,
    )
    logs = [out / "p-0.log", out / "p-1.log"]
    _wait_for(lambda: all(log.exists() and "up" in log.read_text() for log in logs))
    assert len(_processes(mark)) >= 5
    return lab


@pytest.mark.lab
@pytest.mark.parametrize("rights", ["user", "loopback"])
def test_ctrl_c_ends_every_process_of_the_lab_and_only_those(tmp_path: Path, rights: str) -> None:
    mark = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    with subprocess.Popen(["sleep", "300"]) as bystander:
        lab = _running_lab(tmp_path / "out", mark, rights, tmp_path)
        os.killpg(lab.pid, signal.SIGINT)
        assert lab.wait(LIMIT_S) == 130
        assert _processes(mark) == []
        assert list((tmp_path / f"topolab-{os.getuid()}").iterdir()) == []
        assert bystander.poll() is None
        bystander.kill()


@pytest.mark.lab
@pytest.mark.parametrize("rights", ["user", "loopback"])
def test_a_killed_lab_leaves_no_process_and_its_scratch_goes_at_the_next_start(
    tmp_path: Path, rights: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    lab = _running_lab(tmp_path / "out", mark, rights, tmp_path)
    lab.kill()
    lab.wait()
    _wait_for(lambda: _processes(mark) == [])
    home = tmp_path / f"topolab-{os.getuid()}"
    assert len(list(home.iterdir())) == 1
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert arm([pod("p-0")], tmp_path / "next", LOOPBACK).failure is None
    assert list(home.iterdir()) == []


@pytest.mark.lab
@pytest.mark.parametrize("capability", EVERYWHERE, ids=rights_name)
def test_a_pod_that_fails_ends_its_peers_and_shows_its_last_lines(tmp_path: Path, capability: Capability) -> None:
    failing = "for line in range(30): print('line', line)\nraise SystemExit(7)"
    events: list[Event] = []
    began = time.monotonic()
    outcome = arm(
        [pod("p-0", "import time; time.sleep(300)"), pod("p-1", failing)], tmp_path, capability, events=events
    )
    assert time.monotonic() - began < LIMIT_S
    assert outcome.failure is not None
    sentence, *lines = outcome.failure.splitlines()
    assert sentence == (
        f"pod p-1 ended with exit code 7: Error; its peers were ended. Last lines of {tmp_path / 'p-1.log'}:"
    )
    assert lines == [f"    line {number}" for number in range(30 - LAST_LINES, 30)]
    peer, failed = outcome.pods
    assert (failed.exit_code, failed.ended_by_lab) == (7, False)
    assert (peer.exit_code, peer.ended_by_lab) == (143, True)
    assert [event.pod for event in events if isinstance(event, PodExited)] == ["p-1", "p-0"]


@pytest.mark.lab
def test_a_killed_rank_fails_the_arm_although_its_launcher_lives(tmp_path: Path) -> None:
    launcher = """
import os, signal, subprocess, sys
rank = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
os.kill(rank.pid, signal.SIGKILL)
code = rank.wait()
print("rank 1 died with", code)
sys.exit(1 if code else 0)
"""
    outcome = arm([pod("p-0", "import time; time.sleep(300)"), pod("p-1", launcher)], tmp_path, USER)
    assert outcome.failure is not None
    assert outcome.failure.splitlines()[-1] == "    rank 1 died with -9"


@pytest.mark.lab
def test_an_arm_tells_what_happens_while_it_runs(tmp_path: Path) -> None:
    events: list[Event] = []
    outcome = arm([pod("p-0", "print('hello')"), pod("p-1")], tmp_path, USER, events=events)
    assert outcome.failure is None
    assert events[:2] == [PodStarted("p-0", "10.90.0.1"), PodStarted("p-1", "10.90.0.2")]
    assert PodPrinted("p-0", "hello") in events
    ends = [event for event in events if isinstance(event, PodExited)]
    assert sorted((end.pod, end.exit_code, end.reason) for end in ends) == [
        ("p-0", 0, "Completed"),
        ("p-1", 0, "Completed"),
    ]


@pytest.mark.lab
@pytest.mark.parametrize(
    ("capability", "rate", "shaping", "why"),
    [
        (USER, 200e6, "shaped", "200 Mbit/s each way: namespaces of an ordinary user"),
        (USER, None, "undialled", "the topology names no rate for its link"),
        (Capability("user", False, "`tc` isn't installed"), 200e6, "unshaped", "`tc` isn't installed"),
        (LOOPBACK, 200e6, "unshaped", "namespaces are refused here"),
        (LOOPBACK, None, "undialled", "the topology names no rate for its link"),
    ],
)
def test_pods_and_outcome_say_whether_the_rate_was_set_and_why_not(
    tmp_path: Path, capability: Capability, rate: float | None, shaping: str, why: str
) -> None:
    script = "import os; print(os.environ['TOPOLAB_LINK_SHAPING'])"
    outcome = arm([pod("p-0", script)], tmp_path, capability, rate=rate)
    assert log(outcome).strip() == shaping
    assert (outcome.shaping, outcome.shaping_reason) == (shaping, why)
    assert (outcome.pods[0].bytes is None) == (capability.rights is None)


@pytest.mark.lab
def test_two_trivial_pods_start_and_end_within_a_second(tmp_path: Path) -> None:
    # The fastest of three, because other work may have the machine for a moment.
    seconds = [arm([pod("p-0"), pod("p-1")], tmp_path / str(n), USER, rate=1e9).seconds for n in range(3)]
    assert min(seconds) < 1


@pytest.mark.lab
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can stand for a sudo that asks for no password")
def test_a_sudo_that_needs_no_password_makes_the_namespaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As sudo does, it clears the environment.
    sudo = tmp_path / "sudo"
    sudo.write_text('#!/bin/sh\n[ "$1" = -n ] || exit 9\nshift\nexec env -i PATH="$PATH" "$@"\n')
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    outcome = arm([pod("p-0", "print('up')")], tmp_path / "out", Capability("sudo", True, "sudo"), rate=1e9)
    assert (outcome.failure, outcome.shaping, log(outcome)) == (None, "shaped", "up\n")


@pytest.mark.parametrize("capability", [LOOPBACK, pytest.param(USER, marks=pytest.mark.lab)], ids=rights_name)
def test_a_pod_that_cannot_be_honoured_stops_the_arm_before_any_pod_runs_on(
    tmp_path: Path, capability: Capability
) -> None:
    with pytest.raises(ValueError, match=r"pod p-1: spec.containers\[node\].envFrom: the sandbox doesn't know"):
        arm([pod("p-0", "import time; time.sleep(300)"), pod("p-1", container={"envFrom": [1]})], tmp_path, capability)
    assert "Traceback" not in (tmp_path / "p-0.log").read_text()


def test_more_gpus_than_there_are_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    asks = {"resources": {"limits": {"nvidia.com/gpu": 2}}}
    pods = [pod("p-0", container=asks), pod("p-1", container=asks)]
    with pytest.raises(ValueError, match="pods of this arm ask for 4 GPUs and 3 are there"):
        run_arm(pods, (), None, tmp_path, (0, 1, 2), lambda _: None)


def test_pods_with_gpus_find_the_driver_where_the_host_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64")
    script = "import os; print(os.environ.get('LD_LIBRARY_PATH'))"
    asks = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    bench = Bench(capability=LOOPBACK)
    outcome = run_arm([pod("p-0", script, container=asks)], (), None, tmp_path, (0,), lambda _: None, bench)
    assert log(outcome).strip() == "/usr/local/nvidia/lib64"
    assert log(arm([pod("p-0", script)], tmp_path, LOOPBACK)).strip() == "None"


def test_gpus_are_given_out_in_order(tmp_path: Path) -> None:
    script = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])"
    pods = [
        pod("p-0", script, container={"resources": {"limits": {"nvidia.com/gpu": 2}}}),
        pod("p-1", script),
        pod("p-2", script, container={"resources": {"limits": {"nvidia.com/gpu": 1}}}),
    ]
    outcome = run_arm(pods, (), None, tmp_path, (4, 5, 7, 8), lambda _: None, Bench(capability=LOOPBACK))
    assert outcome.failure is None
    assert [log(outcome, index).strip() for index in range(3)] == ["4,5", "", "7"]


@pytest.mark.parametrize(("names", "said"), [(["p-0", "p-0"], "p-0"), ([], "none")])
def test_pods_without_a_name_of_their_own_are_an_error(tmp_path: Path, names: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=f"pods of an arm: {said}; give each pod once"):
        arm([pod(name) for name in names], tmp_path, LOOPBACK)


def test_a_claim_without_its_volume_is_told_before_anything_starts(tmp_path: Path) -> None:
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "records"}, "spec": {"volumeName": "v"}}
    with pytest.raises(ValueError, match="PersistentVolumeClaim records: its volume v isn't rendered"):
        arm([pod("p-0")], tmp_path, LOOPBACK, [claim])


def test_a_supervisor_killed_by_something_else_is_told_as_such(tmp_path: Path) -> None:
    kill = """
import os, pathlib, signal
shim = os.getppid()
supervisor = int(pathlib.Path(f"/proc/{shim}/stat").read_text().rpartition(")")[2].split()[1])
os.kill(supervisor, signal.SIGKILL)
"""
    with pytest.raises(RuntimeError, match="the lab's supervisor ended with code -9: killed"):
        arm([pod("p-0", kill)], tmp_path, LOOPBACK)
