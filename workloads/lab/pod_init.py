"""The first process of a pod: makes its namespaces and root, runs its containers, reports how it ended.

    python -m workloads.lab.pod_init REPORT    a pickled PodProgram on stdin, a PodResult as JSON to file
    REPORT

In namespaces two processes run this: the outer one lives where the lab lives, passes signals on and keeps the
exit code; the inner one is process 1 of the pod's pid namespace, so its end is the end of every process of
the pod. Without namespaces one process does both and adopts what its children leave behind, to end it.

SIGTERM is passed to the container's first process, as the kubelet does; SIGQUIT ends everything at once.
"""

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from workloads.lab import kernel
from workloads.lab.descendants import end_descendants, reap_all
from workloads.lab.pod_program import Container, PodProgram, PodResult
from workloads.lab.pod_root import enter_root
from workloads.lab.watch import SignalWatch

START_ERROR_CODE = 128
"""The kubelet's exit code for a container that could not be started."""


def main(report: int) -> int:
    """Run the pod on stdin; the exit code is the pod's."""
    kernel.die_with_parent(signal.SIGQUIT)
    # Both ends are this repository, and the pipe's other end is the parent: pickle keeps the types.
    program: PodProgram = pickle.load(sys.stdin.buffer)
    with SignalWatch() as watch:
        if program.namespace is None:
            kernel.adopt_orphans()
            result = _run(program, watch)
            end_descendants()
            reap_all()
            return _tell(report, result)
        return _run_inside(program, watch, report)


def _run_inside(program: PodProgram, watch: SignalWatch, report: int) -> int:
    kernel.unshare(kernel.CLONE_NEWPID)
    inner = os.fork()
    if inner == 0:
        os._exit(_first_process(program, report))
    os.close(report)
    while True:
        for number in watch.wait(None):
            if number == signal.SIGTERM:
                os.kill(inner, signal.SIGTERM)
            elif number == signal.SIGQUIT:
                os.kill(inner, signal.SIGKILL)
        ended, status = os.waitpid(inner, os.WNOHANG)
        if ended:
            return shell_code(os.waitstatus_to_exitcode(status))


def _first_process(program: PodProgram, report: int) -> int:
    """Never returns into the outer process's code: whatever happens becomes a report and an exit code."""
    try:
        kernel.die_with_parent()
        with SignalWatch() as watch:
            _enter_namespaces(program)
            return _tell(report, _run(program, watch))
    except OSError as error:
        said = f"the sandbox of pod {program.name} could not be made: {error}"
        return _tell(report, _start_error(program.main, said))


def _enter_namespaces(program: PodProgram) -> None:
    assert program.namespace is not None
    kernel.join_namespace(program.namespace, kernel.CLONE_NEWNET)
    kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC)
    socket.sethostname(program.hostname)
    enter_root(program)


def _run(program: PodProgram, watch: SignalWatch) -> PodResult:
    limit = watch.deadline(program.deadline_s)
    for container in program.init:
        result = _run_container(program, container, watch, limit)
        if result.reason == "Error":
            said = f"init container {container.name} ended with exit code {result.exit_code}"
            return PodResult(result.exit_code, "InitError", container.name, said)
        if result.reason != "Completed":
            return result
    return _run_container(program, program.main, watch, limit)


def _run_container(program: PodProgram, container: Container, watch: SignalWatch, limit: float | None) -> PodResult:
    if watch.asked_to_end:
        return PodResult(128 + signal.SIGTERM, "Error", container.name, "ended before it started")
    try:
        process = _start(program, container)
    except OSError as error:
        said = f"container {container.name}: {error.filename or container.command[0]}: {error.strerror}"
        return _start_error(container, said)
    code, overdue = watch.run(process, limit, program.grace_s)
    if overdue:
        said = f"ran longer than activeDeadlineSeconds ({program.deadline_s:g}) allows"
        print(f"sandbox: pod {program.name} {said}", file=sys.stderr, flush=True)
        return PodResult(shell_code(code), "DeadlineExceeded", container.name, said)
    return PodResult(shell_code(code), "Completed" if code == 0 else "Error", container.name, "")


def _start(program: PodProgram, container: Container) -> subprocess.Popen[bytes]:
    if program.namespace is not None:
        Path(container.folder).mkdir(parents=True, exist_ok=True)
    # extra_groups drops root's groups; in a user namespace, where there is nobody to drop to, it isn't
    # allowed.
    user, group = program.run_as or (None, None)
    return subprocess.Popen(
        container.command,
        env=dict(container.environment),
        cwd=container.folder,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=kernel.die_with_parent,  # noqa: PLW1509 - this process has one thread
        user=user,
        group=group,
        extra_groups=None if program.run_as is None else [],
    )


def _start_error(container: Container, said: str) -> PodResult:
    print(f"sandbox: {said}", file=sys.stderr, flush=True)
    return PodResult(START_ERROR_CODE, "StartError", container.name, said)


def _tell(report: int, result: PodResult) -> int:
    with open(report, "w", encoding="utf-8") as stream:
        json.dump(asdict(result), stream)
    return result.exit_code


def shell_code(code: int) -> int:
    """Python's -N for a process ended by signal N, as a shell and Kubernetes write it."""
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
