"""Runs the pods of one arm on this machine and says how they ended and what crossed their links."""

import contextlib
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainer.record import LinkShaping
from workloads.lab import kernel
from workloads.lab.capability import Capability, probe
from workloads.lab.documents import Manifest, look_up
from workloads.lab.events import Event, Finished, LinksCounted, PodExited, PodPrinted, Refused, from_line
from workloads.lab.links import LinkBytes
from workloads.lab.log_tail import LogTail
from workloads.lab.pod_fields import gpus_asked
from workloads.lab.pod_program import Reason
from workloads.lab.scratch import scratch_folder
from workloads.lab.supervisor import ENDING_GRACE_S, Job

LAST_LINES = 15
"""Of a failed pod's log, shown with the failure."""

_LOOK_EVERY_S = 0.2
_REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What of this machine the pods get, the same for every arm of an experiment."""

    interpreter: Path = Path(sys.executable)
    """What `python` means in the pods."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that every pod gets beside its own."""
    shared_folders: tuple[Path, ...] = ()
    """Folders that the pods see and write at their own path, such as a cache."""
    capability: Capability | None = None
    """None: found out by trying."""


@dataclass(frozen=True)
class PodOutcome:
    """How one pod ended."""

    pod: str
    exit_code: int
    reason: Reason
    ended_by_lab: bool
    log: Path
    bytes: LinkBytes | None
    """All that crossed its link, as the host's end of it counted; None without namespaces."""


@dataclass(frozen=True)
class ArmOutcome:
    """How an arm ended."""

    pods: tuple[PodOutcome, ...]
    shaping: LinkShaping
    shaping_reason: str
    """One sentence: who set the rate, or why nobody did."""
    seconds: float
    """From the first pod's start to the last pod's end, the making of the links included."""
    failure: str | None
    """Which pod failed first and how, with its last lines; None when all ended with 0."""


def run_arm(
    pods: Sequence[Manifest],
    documents: Sequence[Manifest],
    link_rate_bits_per_s: float | None,
    out: Path,
    gpus: Sequence[int],
    on_event: Callable[[Event], None],
    bench: Bench | None = None,
) -> ArmOutcome:
    """Run `pods` to their end; logs go to `out`/<pod>.log.

    `documents` hold the config maps, secrets, claims and volumes that the pods name; `gpus` are the indices
    of the GPUs that may be given out, in order. Ctrl-C ends every process of the arm and is raised again.
    Raises ValueError where a pod can't be run here, RuntimeError where the lab's own process was killed.
    """
    bench = bench or Bench()
    capability = bench.capability or probe()
    shaping, why = _shaping(capability, link_rate_bits_per_s)
    names = _names(pods)
    look_up(documents)  # What they lack is said before anything starts, and their folders become the caller's.
    out.mkdir(parents=True, exist_ok=True)
    logs = {name: out / f"{name}.log" for name in names}
    for log in logs.values():
        log.write_bytes(b"")
    with scratch_folder() as scratch:
        job = Job(
            pods=tuple(map(dict, pods)),
            documents=tuple(map(dict, documents)),
            gpus=_share_gpus(pods, gpus),
            rate_bits_per_s=link_rate_bits_per_s if shaping == "shaped" else None,
            namespaces=capability.rights is not None,
            interpreter=str(bench.interpreter.absolute()),
            environment={**_driver_path(gpus), **bench.environment, "TOPOLAB_LINK_SHAPING": shaping},
            shared_folders=tuple(str(folder.absolute()) for folder in bench.shared_folders),
            scratch=str(scratch),
            logs={name: str(log.absolute()) for name, log in logs.items()},
            run_as=(os.getuid(), os.getgid()) if capability.rights == "sudo" else None,
        )
        told = _Told(LogTail(logs), on_event)
        with _supervisor(job, capability, scratch / "supervisor.log") as process:
            _listen(process, told)
    return _outcome(told, logs, shaping, why)


class _Told:
    """What was heard so far."""

    def __init__(self, tail: LogTail, on_event: Callable[[Event], None]) -> None:
        self.exits: list[PodExited] = []
        self.bytes: Mapping[str, LinkBytes] = {}
        self.seconds: float | None = None
        self._tail = tail
        self._on_event = on_event

    def hear(self, line: str) -> None:
        """One line of the supervisor's."""
        event = from_line(line)
        if isinstance(event, Refused):
            raise ValueError(event.sentence)
        if isinstance(event, Finished):
            self.seconds = event.seconds
            return
        if isinstance(event, LinksCounted):
            self.bytes = event.pods
        if isinstance(event, PodExited):
            self.look_at_logs()
            self.exits.append(event)
        self._on_event(event)

    def look_at_logs(self) -> None:
        """Pass on what the pods printed since the last look."""
        for pod, line in self._tail.new_lines():
            self._on_event(PodPrinted(pod, line))


def _names(pods: Sequence[Manifest]) -> list[str]:
    names = [pod["metadata"]["name"] for pod in pods]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not names:
        raise ValueError(f"pods of an arm: {', '.join(twice) or 'none'}; give each pod once, under its own name")
    return names


def _share_gpus(pods: Sequence[Manifest], gpus: Sequence[int]) -> dict[str, tuple[int, ...]]:
    asked = [gpus_asked(pod["spec"]["containers"][0]) for pod in pods]
    if sum(asked) > len(gpus):
        raise ValueError(
            f"the pods of this arm ask for {sum(asked)} GPUs and {len(gpus)} are there; choose a smaller topology"
        )
    starts = [sum(asked[:index]) for index in range(len(asked))]
    return {
        name: tuple(gpus[start : start + count]) for name, start, count in zip(_names(pods), starts, asked, strict=True)
    }


def _driver_path(gpus: Sequence[int]) -> dict[str, str]:
    """Where the GPU driver's libraries lie on a host that is a container itself: its loader is told by name."""
    path = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": path} if gpus and path else {}


def _shaping(capability: Capability, rate_bits_per_s: float | None) -> tuple[LinkShaping, str]:
    if rate_bits_per_s is None:
        return "undialled", "the topology names no rate for its link"
    if capability.shaping:
        return "shaped", f"{rate_bits_per_s / 1e6:g} Mbit/s each way: {capability.reason}"
    return "unshaped", capability.reason


@contextlib.contextmanager
def _supervisor(job: Job, capability: Capability, errors: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The supervisor at work; at the end, however it comes, nothing of it is left."""
    module = [sys.executable, "-P", "-S", "-m", "workloads.lab.supervisor"]
    # `env`, because sudo clears the environment that it is given.
    command = capability.command(["/usr/bin/env", f"PYTHONPATH={_REPOSITORY}", *module])
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
            preexec_fn=kernel.die_with_parent,  # noqa: PLW1509 - one system call, no lock
        )
    try:
        _send(process, job)
        yield process
        if process.wait() != 0:
            said = " ".join(errors.read_text(errors="replace").split()[-60:])
            raise RuntimeError(f"the lab's supervisor ended with code {process.returncode}: {said or 'killed'}")
    finally:
        _stop(process)


def _send(process: subprocess.Popen[bytes], job: Job) -> None:
    assert process.stdin is not None
    # One that could not start is found by its exit code.
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(f"{job.to_line()}\n".encode())
        process.stdin.flush()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """The end of stdin asks it to end its pods; a second Ctrl-C, or too long a wait, kills it and so them."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.wait(2 * ENDING_GRACE_S)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        process.stdout.close()


def _listen(process: subprocess.Popen[bytes], told: _Told) -> None:
    """Until the supervisor closes its stdout."""
    assert process.stdout is not None
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if selector.select(_LOOK_EVERY_S):
                chunk = os.read(process.stdout.fileno(), 1 << 16)
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    told.hear(line.decode())
                if not chunk:
                    return
            told.look_at_logs()


def _outcome(told: _Told, logs: Mapping[str, Path], shaping: LinkShaping, why: str) -> ArmOutcome:
    if told.seconds is None or len(told.exits) != len(logs):
        raise RuntimeError("the lab's supervisor ended before its pods did; something else killed it")
    exits = {event.pod: event for event in told.exits}
    pods = tuple(
        PodOutcome(
            pod=name,
            exit_code=exits[name].exit_code,
            reason=exits[name].reason,
            ended_by_lab=exits[name].ended_by_lab,
            log=log,
            bytes=told.bytes.get(name),
        )
        for name, log in logs.items()
    )
    failed = [event for event in told.exits if event.exit_code != 0 and not event.ended_by_lab]
    failure = _failure(failed[0], logs[failed[0].pod]) if failed else None
    return ArmOutcome(pods, shaping, why, told.seconds, failure)


def _failure(event: PodExited, log: Path) -> str:
    lines = _own_words(log.read_text(errors="replace").splitlines())[-LAST_LINES:]
    said = f" ({event.message})" if event.message else ""
    last = "\n".join(f"    {line}" for line in lines) or "    (it printed nothing)"
    return (
        f"pod {event.pod} ended with exit code {event.exit_code}: {event.reason}{said}; its peers were "
        f"ended. Last lines of {log}:\n{last}"
    )


def _own_words(lines: list[str]) -> list[str]:
    """What the ranks said themselves: torchrun marks it, and its own account of the failure has no cause in it."""
    ranks = [line for line in lines if line.startswith("[default")]
    return ranks or lines
