"""Runs one arm's pods on a network of their own; started by `workloads.lab.arm` in outer namespaces.

    python -m workloads.lab.supervisor     a Job as one line of JSON on stdin, events as lines on stdout

The stdin stays open for as long as the lab lives: its end, even by a kill, ends the pods. In namespaces this
is process 1, so whatever ends it ends every process of the arm.
"""

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from workloads.lab import kernel
from workloads.lab.documents import References, look_up
from workloads.lab.events import Event, Finished, LinksCounted, Noted, PodExited, PodStarted, Refused, to_line
from workloads.lab.links import Network, PodLink, hosts_file
from workloads.lab.loopback import on_loopback
from workloads.lab.pod_program import PodResult, Surroundings
from workloads.lab.pod_root import make_folder
from workloads.lab.sandbox import RunningPod, end_pods, start_pod

ENDING_GRACE_S = 5.0
"""From SIGTERM to the kill, at most, when a peer has failed or the lab is stopped: nobody waits for them."""

_COUNT_EVERY_S = 1.0
_STDIN = 0


@dataclass(frozen=True, kw_only=True)
class Job:
    """One arm, as plain values."""

    pods: tuple[dict[str, Any], ...]
    documents: tuple[dict[str, Any], ...]
    gpus: Mapping[str, tuple[int, ...]]
    """Of each pod."""
    rate_bits_per_s: float | None
    """To be set on each link."""
    namespaces: bool
    interpreter: str
    environment: Mapping[str, str]
    shared_folders: tuple[str, ...]
    scratch: str
    logs: Mapping[str, str]
    """Of each pod; the files exist."""
    run_as: tuple[int, int] | None

    def to_line(self) -> str:
        """One line of JSON, without its end."""
        return json.dumps(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> Self:
        """The job of a line that `to_line` wrote."""
        values = json.loads(line)
        for name in ("pods", "documents", "shared_folders"):
            values[name] = tuple(values[name])
        values["gpus"] = {pod: tuple(gpus) for pod, gpus in values["gpus"].items()}
        values["run_as"] = None if values["run_as"] is None else tuple(values["run_as"])
        return cls(**values)


def main() -> int:
    """Run the job on stdin; 0 when every pod's end was told."""
    # Ctrl-C belongs to the lab, which closes stdin; this process must live to end its pods in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    kernel.die_with_parent()
    with open(_STDIN, encoding="utf-8", closefd=False) as stream:
        line = stream.readline()
    try:
        _run(Job.from_line(line))
    except (ValueError, OSError) as error:
        _tell(Refused(str(error)))
        return 1
    return 0


def _run(job: Job) -> None:
    references = look_up(job.documents)
    began = time.monotonic()
    if not job.namespaces:
        kernel.adopt_orphans()
        pods, note = on_loopback(job.pods)
        if note is not None:
            _tell(Noted(note))
        with _started(job, pods, references, {}) as running:
            _watch(running, None)
    else:
        with Network() as network:
            links = {pod["metadata"]["name"]: _join(network, pod, job) for pod in job.pods}
            with _started(job, job.pods, references, links) as running:
                _watch(running, network)
    _tell(Finished(time.monotonic() - began))


def _join(network: Network, pod: Mapping[str, Any], job: Job) -> PodLink:
    return network.join(pod["metadata"]["name"], job.rate_bits_per_s)


@contextlib.contextmanager
def _started(
    job: Job, pods: Sequence[Mapping[str, Any]], references: References, links: Mapping[str, PodLink]
) -> Iterator[list[RunningPod]]:
    """The running pods; whatever happens, none is left at the end."""
    peers = [(pod, links[pod["metadata"]["name"]].address) for pod in pods if links]
    running: list[RunningPod] = []
    try:
        for pod in pods:
            link = links.get(pod["metadata"]["name"])
            running.append(start_pod(pod, _surroundings(job, pod, references, link, peers)))
            _tell(PodStarted(pod["metadata"]["name"], link.address if link else "127.0.0.1"))
        yield running
    finally:
        end_pods(running, 0)


def _surroundings(
    job: Job,
    pod: Mapping[str, Any],
    references: References,
    link: PodLink | None,
    peers: Sequence[tuple[Mapping[str, Any], str]],
) -> Surroundings:
    name = pod["metadata"]["name"]
    state = Path(job.scratch) / name
    make_folder(state, 0o755, job.run_as)
    return Surroundings(
        state=state,
        log=Path(job.logs[name]),
        references=references,
        link=link,
        hosts=hosts_file(pod, peers),
        interpreter=Path(job.interpreter),
        environment=job.environment,
        shared_folders=tuple(map(Path, job.shared_folders)),
        gpus=job.gpus[name],
        run_as=job.run_as,
        node=os.uname().nodename,
    )


def _watch(running: Sequence[RunningPod], network: Network | None) -> None:
    """Until all have ended; the first failure, or the end of stdin, ends the rest."""
    living = list(running)
    count_at = time.monotonic()
    while living:
        if network is not None and time.monotonic() >= count_at:
            _tell(LinksCounted(network.counters()))
            count_at = time.monotonic() + _COUNT_EVERY_S
        patience = max(0.0, count_at - time.monotonic()) if network else None
        ready, _, _ = select.select([_STDIN, *(pod.fileno() for pod in living)], [], [], patience)
        if _STDIN in ready:
            _end(living, network)
            return
        ended = [pod for pod in living if pod.fileno() in ready]
        results = [_tell_end(pod, pod.wait(), network, ended_by_lab=False) for pod in ended]
        living = [pod for pod in living if pod not in ended]
        if any(result.exit_code != 0 for result in results):
            _end(living, network)
            return


def _end(pods: Sequence[RunningPod], network: Network | None) -> None:
    end_pods(pods, min([ENDING_GRACE_S, *(pod.grace_s for pod in pods)]))
    for pod in pods:
        _tell_end(pod, pod.wait(), network, ended_by_lab=True)


def _tell_end(pod: RunningPod, result: PodResult, network: Network | None, *, ended_by_lab: bool) -> PodResult:
    if network is not None:
        _tell(LinksCounted(network.counters()))
    _tell(PodExited(pod.name, result.exit_code, result.reason, result.message, ended_by_lab))
    return result


def _tell(event: Event | Refused | Finished) -> None:
    with contextlib.suppress(BrokenPipeError):
        print(to_line(event), flush=True)


if __name__ == "__main__":
    sys.exit(main())
