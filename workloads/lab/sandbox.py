"""Runs one Kubernetes Pod as processes, in namespaces of its own where the machine allows them."""

import contextlib
import json
import os
import pickle
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from workloads.lab.documents import Manifest
from workloads.lab.loopback import relocate
from workloads.lab.pod_init import shell_code
from workloads.lab.pod_program import PodProgram, PodResult, Surroundings
from workloads.lab.pod_reader import read_pod
from workloads.lab.pod_root import make_folder

_REPOSITORY = Path(__file__).resolve().parents[2]

# How long a kill takes at most before something is wrong with the machine.
_KILL_LIMIT_S = 5.0


class RunningPod:
    """A pod that was started: wait for it, or end it."""

    def __init__(self, program: PodProgram, log: Path, process: subprocess.Popen[bytes], report: int) -> None:
        self.name = program.name
        self.log = log
        self.pid = process.pid
        """The process that stands for the pod where the caller lives."""
        self.grace_s = program.grace_s
        self._main = program.main.name
        self._process = process
        self._report = report
        self._result: PodResult | None = None

    def fileno(self) -> int:
        """A file that becomes readable when the pod has ended (for `select`)."""
        return self._report

    def poll(self) -> PodResult | None:
        """How it ended; None while it runs."""
        return None if self._process.poll() is None else self._finish()

    def wait(self, timeout_s: float | None = None) -> PodResult:
        """Wait for its end; TimeoutError after `timeout_s`."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"pod {self.name} still runs after {timeout_s:g} s") from error
        return self._finish()

    def terminate(self, grace_s: float | None = None) -> PodResult:
        """SIGTERM, and after `grace_s` (None: the pod's own) the end of all its processes."""
        end_pods([self], self.grace_s if grace_s is None else grace_s)
        return self._finish()

    def signal(self, number: int) -> None:
        """Pass a signal on: SIGTERM asks the container to end, SIGQUIT kills all of the pod's processes."""
        if self._process.poll() is None:
            self._process.send_signal(number)

    def _finish(self) -> PodResult:
        if self._result is None:
            with os.fdopen(self._report, encoding="utf-8") as report:
                told = report.read()
            # Nothing was told when the sandbox itself was killed.
            code = shell_code(self._process.returncode)
            unsaid = PodResult(code, "Error", self._main, f"ended by signal {code - 128}" if code > 128 else "")
            self._result = PodResult(**json.loads(told)) if told else unsaid
        return self._result


def start_pod(pod: Manifest, surroundings: Surroundings) -> RunningPod:
    """Start the pod; ValueError names a field that the sandbox can't honour, and nothing has started then.

    With a link the pod gets network, mount, pid, ipc and host-name namespaces of its own. CPU and memory
    that it asks for are the plan's business: no limit is set.
    """
    bin_folder = _bin_folder(surroundings)
    visible = python_folders(surroundings.interpreter, bin_folder)
    given = {**surroundings.environment, **_gpu_environment(pod, surroundings)}
    program = read_pod(pod, replace(surroundings, environment=given), bin_folder, visible)
    if program.namespace is None:
        program = relocate(program, given)
    return _spawn(program, surroundings.log)


def end_pods(pods: Sequence[RunningPod], grace_s: float) -> None:
    """End them together: SIGTERM to all, and what runs after `grace_s` is killed."""
    for number, patience_s in (
        (signal.SIGTERM, grace_s),
        (signal.SIGQUIT, _KILL_LIMIT_S),
        (signal.SIGKILL, None),
    ):
        for pod in pods:
            pod.signal(number)
        if _all_ended(pods, patience_s):
            return


def _all_ended(pods: Sequence[RunningPod], patience_s: float | None) -> bool:
    limit = None if patience_s is None else time.monotonic() + patience_s
    for pod in pods:
        try:
            pod.wait(None if limit is None else max(0.0, limit - time.monotonic()))
        except TimeoutError:
            return False
    return True


def _gpu_environment(pod: Manifest, surroundings: Surroundings) -> dict[str, str]:
    """Which GPUs CUDA shows, and a host id per pod: ranks of other pods must not look local to NCCL."""
    visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, surroundings.gpus))}
    return visible | ({"NCCL_HOSTID": str(pod["metadata"]["name"])} if surroundings.gpus else {})


def _bin_folder(surroundings: Surroundings) -> str:
    """A folder whose `python` is the interpreter: its own, or one made for it."""
    interpreter = surroundings.interpreter
    beside = interpreter.parent / "python"
    if beside == interpreter or (beside.exists() and beside.samefile(interpreter)):
        return str(interpreter.parent)
    folder = surroundings.state / "bin"
    make_folder(folder, 0o755, surroundings.run_as)
    # Not a symbolic link: a virtual environment is found beside the path that was called.
    wrapper = folder / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(str(interpreter))} "$@"\n')
    wrapper.chmod(0o755)
    return str(folder)


def python_folders(interpreter: Path, bin_folder: str) -> tuple[str, ...]:
    """The interpreter's own installation, the one that a virtual environment was made from, and what it imports.

    An environment may stand on another one's packages (a `.pth` file names them); of the interpreter that runs
    this they are known.
    """
    imported = {Path(folder) for folder in sys.path} if interpreter.samefile(sys.executable) else set()
    installations = {interpreter.parent.parent, interpreter.resolve().parent.parent}
    installations |= {folder for folder in imported if folder.is_absolute() and folder.is_dir()}
    return tuple(sorted({str(folder) for folder in installations if folder != Path("/")} | {bin_folder}))


def _spawn(program: PodProgram, log: Path) -> RunningPod:
    report, write = os.pipe()
    passed = [write] if program.namespace is None else [write, program.namespace]
    try:
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-S", "-m", "workloads.lab.pod_init", str(write)],
                env={"PATH": os.defpath, "PYTHONPATH": str(_REPOSITORY)},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=passed,
            )
    finally:
        os.close(write)
    assert process.stdin is not None
    # A sandbox killed this early is found by `wait`.
    with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
        pipe.write(pickle.dumps(program))
    return RunningPod(program, log, process, report)
