"""One pod at a time, started as the process kubelet does: with a link of a network, or without."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.lab.scene import (
    EVERYWHERE,
    ROOT,
    USER,
    WITH_NAMESPACES,
    arm,
    log,
    pod,
    rights_name,
    surroundings,
)
from workloads.lab.capability import Capability
from workloads.lab.descendants import descendants
from workloads.lab.sandbox import RunningPod, end_pods, python_folders, start_pod

LIMIT_S = 20.0
"""A machine under load is slow; a pod that still runs after this hangs."""

Start = Callable[..., RunningPod]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starts a pod on the loopback, where no namespace needs an outer one."""

    def started(subject: dict[str, Any], **changes: Any) -> RunningPod:
        given = {"link": None, "interpreter": Path(sys.executable), "log": tmp_path / "log", **changes}
        return start_pod(subject, surroundings(tmp_path, **given))

    return started


def _says(pod: RunningPod, word: str) -> None:
    """Wait until the pod has printed `word`."""
    limit = time.monotonic() + LIMIT_S
    while word not in pod.log.read_text():
        assert time.monotonic() < limit, pod.log.read_text()
        time.sleep(0.01)


def test_a_pod_is_waited_for_and_its_code_and_output_are_kept(start: Start) -> None:
    running = start(pod("p-0", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"))
    with pytest.raises(TimeoutError, match="pod p-0 still runs after 0 s"):
        running.wait(0)
    result = running.wait(LIMIT_S)
    assert (result.exit_code, result.reason, result.container) == (3, "Error", "node")
    assert running.poll() == result
    assert sorted(running.log.read_text().split()) == ["err", "out"]


def test_a_killed_container_ends_with_128_and_the_signal(start: Start) -> None:
    result = start(pod("p-0", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")).wait(LIMIT_S)
    assert (result.exit_code, result.reason) == (137, "Error")


def test_a_program_that_is_not_there_could_not_be_started_and_is_named(start: Start) -> None:
    running = start(pod("p-0", container={"command": ["no-such-program"]}))
    result = running.wait(LIMIT_S)
    assert (result.exit_code, result.reason) == (128, "StartError")
    assert result.message == "container node: no-such-program: No such file or directory"
    assert result.message in running.log.read_text()


def test_a_terminated_pod_may_end_in_order(start: Start) -> None:
    script = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(5)); print('up'); time.sleep(60)"
    )
    running = start(pod("p-0", script))
    _says(running, "up")
    assert running.terminate(LIMIT_S).exit_code == 5


def test_a_pod_that_will_not_end_is_killed_with_all_that_it_started(start: Start) -> None:
    script = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; print('child up', flush=True); time.sleep(60)"],
                 start_new_session=True)
time.sleep(60)
"""
    running = start(pod("p-0", script))
    _says(running, "child up")
    below = descendants(running.pid)
    assert len(below) == 2
    assert running.terminate(0.1).exit_code == 137
    assert not [pid for pid in below if Path(f"/proc/{pid}").exists()]


def test_a_pod_that_outlives_its_deadline_is_ended_and_the_reason_kept(start: Start) -> None:
    running = start(pod("p-0", "import time; time.sleep(60)", activeDeadlineSeconds=1))
    result = running.wait(LIMIT_S)
    assert (result.exit_code, result.reason) == (143, "DeadlineExceeded")
    assert "ran longer than activeDeadlineSeconds (1) allows" in running.log.read_text()


def test_after_the_deadline_the_grace_is_the_pods_own(start: Start) -> None:
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    subject = pod("p-0", stubborn, activeDeadlineSeconds=1, terminationGracePeriodSeconds=0)
    assert start(subject).wait(LIMIT_S).exit_code == 137


def test_init_containers_run_first_in_order_and_a_failed_one_is_the_pods_end(start: Start) -> None:
    def first(name: str, script: str) -> dict[str, Any]:
        return {"name": name, "command": ["python", "-c", script]}

    order = [first("one", "print('one')"), first("two", "print('two'); raise SystemExit(4)"), first("three", "")]
    running = start(pod("p-0", "print('main')", initContainers=order))
    result = running.wait(LIMIT_S)
    assert (result.exit_code, result.reason, result.container) == (4, "InitError", "two")
    assert running.log.read_text().split() == ["one", "two"]


def test_what_a_container_leaves_behind_ends_with_the_pod(start: Start) -> None:
    script = """
import subprocess, sys
orphan = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
print(orphan.pid)
"""
    running = start(pod("p-0", script))
    assert running.wait(LIMIT_S).exit_code == 0
    assert not Path(f"/proc/{running.log.read_text().strip()}").exists()


def test_a_sandbox_that_is_killed_itself_is_told_as_a_signal(start: Start) -> None:
    running = start(pod("p-0", "import time; print('up'); time.sleep(60)"))
    _says(running, "up")
    main = descendants(running.pid)
    os.kill(running.pid, signal.SIGKILL)
    result = running.wait(LIMIT_S)
    assert (result.exit_code, result.message) == (137, "ended by signal 9")
    limit = time.monotonic() + LIMIT_S
    while any(Path(f"/proc/{pid}").exists() for pid in main):
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_pods_are_ended_together_not_one_after_the_other(tmp_path: Path) -> None:
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); time.sleep(60)"
    pods = []
    for index in range(3):
        state = tmp_path / str(index)
        state.mkdir()
        pods.append(
            start_pod(pod(f"p-{index}", stubborn), surroundings(state, link=None, interpreter=Path(sys.executable)))
        )
    for running in pods:
        _says(running, "up")
    began = time.monotonic()
    end_pods(pods, 1)
    assert time.monotonic() - began < 2.5
    assert {running.wait(0).exit_code for running in pods} == {137}


def test_python_is_the_given_interpreter_whatever_its_file_is_called(start: Start, tmp_path: Path) -> None:
    other = tmp_path / "installation" / "bin" / "python-by-another-name"
    other.parent.mkdir(parents=True)
    other.symlink_to(sys.executable)
    assert not (other.parent / "python").exists()
    running = start(pod("p-0", "import sys; print(sys.orig_argv[0])"), interpreter=other)
    assert running.wait(LIMIT_S).exit_code == 0
    assert running.log.read_text().strip() == str(other)


def test_packages_that_another_environment_lends_the_interpreter_are_shown_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lent = tmp_path / "lent" / "site-packages"
    lent.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(lent))
    shown = python_folders(Path(sys.executable), "/bin")
    assert str(lent) in shown
    assert str(tmp_path / "absent") not in shown


def test_gpus_of_a_pod_are_the_only_visible_ones_and_its_ranks_are_a_host_of_their_own(start: Start) -> None:
    script = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'], os.environ['NCCL_HOSTID'])"
    asks = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
    running = start(pod("p-0", script, container=asks), gpus=(2, 3))
    assert running.wait(LIMIT_S).exit_code == 0
    assert running.log.read_text().split() == ["2,3", "p-0"]


def test_a_pod_without_gpus_sees_none(start: Start) -> None:
    script = "import os; print(repr(os.environ['CUDA_VISIBLE_DEVICES']), 'NCCL_HOSTID' in os.environ)"
    running = start(pod("p-0", script))
    assert running.wait(LIMIT_S).exit_code == 0
    assert running.log.read_text().split() == ["''", "False"]


VOLUMES: dict[str, Any] = {
    "volumes": [
        {"name": "config", "configMap": {"name": "map", "items": [{"key": "a", "path": "config.json"}]}},
        {"name": "code", "configMap": {"name": "map"}},
        {"name": "secret", "secret": {"secretName": "secret", "defaultMode": 0o400}},
        {"name": "scratch", "emptyDir": {}},
        {"name": "records", "persistentVolumeClaim": {"claimName": "records"}},
    ],
    "container": {
        "env": [
            {"name": "PYTHONPATH", "value": "/opt/topolab-of-a-test/code"},
            {"name": "RECORDS", "value": "file:///records"},
        ],
        "volumeMounts": [
            {"name": "config", "mountPath": "/config"},
            {"name": "code", "mountPath": "/opt/topolab-of-a-test/code/package"},
            {"name": "secret", "mountPath": "/var/secret"},
            {"name": "scratch", "mountPath": "/scratch"},
            {"name": "records", "mountPath": "/records"},
        ],
    },
}

READ_AND_WRITE = """
import json, os, pathlib, sys
import package.module
config, secret, scratch, tmp = map(pathlib.Path, sys.argv[1:])
records = pathlib.Path(os.environ["RECORDS"].removeprefix("file://"))
(records / "record").write_text("kept")
(scratch / "file").write_text("gone")
(tmp / "file").write_text("gone")
print(json.dumps([config.read_text(), secret.read_text(), package.module.X]))
"""


@pytest.mark.lab
@pytest.mark.parametrize("capability", EVERYWHERE, ids=rights_name)
def test_every_kind_of_volume_is_where_the_pod_says(tmp_path: Path, capability: Capability) -> None:
    records = tmp_path / "records"
    documents = [
        {"kind": "ConfigMap", "metadata": {"name": "map"}, "data": {"a": "A", "module.py": "X = 7"}},
        {"kind": "Secret", "metadata": {"name": "secret"}, "stringData": {"token": "hf_x"}},
        {
            "kind": "PersistentVolume",
            "metadata": {"name": "volume"},
            "spec": {"hostPath": {"path": str(records), "type": "DirectoryOrCreate"}},
        },
        {"kind": "PersistentVolumeClaim", "metadata": {"name": "records"}, "spec": {"volumeName": "volume"}},
    ]
    paths = ("/config/config.json", "/var/secret/token", "/scratch", "/tmp")
    before = set(Path("/").iterdir()) | set(Path("/opt").iterdir())
    outcome = arm([pod("p-0", READ_AND_WRITE, *paths, **VOLUMES)], tmp_path / "out", capability, documents)
    assert outcome.failure is None
    assert json.loads(log(outcome)) == ["A", "hf_x", 7]
    assert (records / "record").read_text() == "kept"
    assert set(Path("/").iterdir()) | set(Path("/opt").iterdir()) == before


@pytest.mark.lab
@pytest.mark.parametrize("capability", WITH_NAMESPACES, ids=rights_name)
def test_a_pod_is_alone_on_its_machine(tmp_path: Path, capability: Capability) -> None:
    script = """
import json, os, pathlib, socket
seen = [entry for entry in os.listdir("/proc") if entry.isdigit()]
print(json.dumps({
    "processes": len(seen), "host": socket.gethostname(), "peer": socket.gethostbyname("p-1.job"),
    "own": socket.gethostbyname(socket.gethostname()), "tmp": os.listdir("/tmp"), "user": os.getuid(),
    "shared memory": os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize,
    "devices": sorted(os.listdir("/dev"))}))
"""
    shm: dict[str, Any] = {
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}}],
        "container": {"volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]},
    }
    outcome = arm([pod("p-0", script, **shm), pod("p-1")], tmp_path, capability)
    assert outcome.failure is None, outcome.failure
    seen = json.loads(log(outcome))
    assert seen["processes"] == 2
    assert (seen["host"], seen["own"], seen["peer"]) == ("p-0", "10.90.0.1", "10.90.0.2")
    assert "home" in seen["tmp"]
    assert seen["user"] == 0
    assert seen["shared memory"] == 256 * 2**20
    assert {"null", "shm", "urandom"} <= set(seen["devices"])
    assert not {"kmsg", "mem", "sda", "vda"} & set(seen["devices"])


@pytest.mark.lab
@pytest.mark.parametrize("capability", WITH_NAMESPACES, ids=rights_name)
def test_a_pod_writes_nothing_to_the_host_but_what_it_mounts_and_shares(tmp_path: Path, capability: Capability) -> None:
    shared, beside = tmp_path / "cache", tmp_path / "beside"
    shared.mkdir()
    script = """
import os, pathlib, sys
for path in sys.argv[1:]:
    try:
        pathlib.Path(path, "written").touch()
        print("written")
    except OSError as error:
        print(error.strerror)
"""
    subject = pod("p-0", script, "/usr", "/", str(shared), str(beside))
    outcome = arm([subject], tmp_path / "out", capability, shared_folders=(shared,))
    assert outcome.failure is None
    # `/` is the pod's own; what lies beside the shared folder below /tmp doesn't exist for it.
    assert log(outcome).splitlines() == [
        "Read-only file system",
        "written",
        "written",
        "No such file or directory",
    ]
    assert (shared / "written").exists()
    assert not Path("/written").exists()
    assert not Path("/usr/written").exists()


@pytest.mark.lab
def test_a_working_folder_that_no_host_has_is_made_for_the_pod(tmp_path: Path) -> None:
    subject = pod("p-0", "import os; print(os.getcwd())", container={"workingDir": "/opt/of-a-test/work"})
    outcome = arm([subject], tmp_path, USER)
    assert log(outcome).strip() == "/opt/of-a-test/work"
    assert not Path("/opt/of-a-test").exists()


@pytest.mark.lab
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user, as sudo's pods do")
def test_pods_made_by_another_user_leave_files_of_the_one_who_asked(tmp_path: Path) -> None:
    nobody = 65534
    records, state = tmp_path / "records", tmp_path / "state"
    for folder in (records, state):
        folder.mkdir()
        shutil.chown(folder, nobody, nobody)
    tmp_path.chmod(0o755)
    for above in tmp_path.parents[:2]:
        above.chmod(0o755)
    subject = pod(
        "p-0",
        "echo x > /records/record && echo x > /tmp/file && id -u",
        volumes=[{"name": "records", "hostPath": {"path": str(records)}}],
        container={
            "command": ["/bin/sh", "-c"],
            "args": ["echo x > /records/record && echo x > /tmp/file && id -u"],
            "volumeMounts": [{"name": "records", "mountPath": "/records"}],
        },
    )
    script = """
import json, sys; from pathlib import Path
from tests.workloads.lab.scene import surroundings
from workloads.lab.links import Network
from workloads.lab.sandbox import start_pod
with Network() as network:
    link = network.join("p-0", None)
    around = surroundings(Path(sys.argv[2]), log=Path(sys.argv[3]), link=link, run_as=(65534, 65534))
    raise SystemExit(start_pod(json.loads(sys.argv[1]), around).wait(20).exit_code)
"""
    command = [sys.executable, "-c", script, json.dumps(subject), str(state), str(tmp_path / "log")]
    subprocess.run(ROOT.command(command), check=True, cwd=Path(__file__).parents[3])
    assert (tmp_path / "log").read_text().strip() == str(nobody)
    assert (records / "record").stat().st_uid == nobody
    # Who owns a folder may remove what lies in it.
    assert {path.stat().st_uid for path in state.rglob("*") if path.is_dir()} == {nobody}
