"""One look at a run: its phase in words, its nodes, its pods, its progress. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from workloads.operations.pending.explain import Finding, explain
from workloads.operations.pending.observed import Document, Observed, conditions
from workloads.operations.watch.nodes import Nodes, nodes
from workloads.operations.watch.progress import Progress, progress

End = Literal["complete", "failed", "suspended", "absent"]
_ENDS: Mapping[str, End] = {"Complete": "complete", "Failed": "failed", "Suspended": "suspended"}


@dataclass(frozen=True, kw_only=True)
class Watched:
    """`end`: how it ended, None while it goes on. `findings`: why pods wait, where they do."""

    job: str
    phase: str
    end: End | None
    pods: Mapping[str, int]
    nodes: Nodes
    progress: Progress | None
    findings: tuple[Finding, ...]


def watched(job: str, observed: Observed, log: Sequence[str]) -> Watched:
    """From a look at the cluster and the last lines of rank 0."""
    end = _end(observed.train_job)
    answer, found, done = explain(job, observed), nodes(observed), progress(observed.train_job, log)
    return Watched(
        job=job,
        phase=next(_phases(observed, found, done, end)),
        end=end,
        pods=answer.phases,
        nodes=found,
        progress=done,
        findings=answer.findings,
    )


def first_pod(observed: Observed) -> str | None:
    """The pod of rank 0, whose log tells the steps; None before it runs."""
    label = "batch.kubernetes.io/job-completion-index"
    return next(
        (
            str(pod["metadata"]["name"])
            for pod in observed.pods
            if (pod["metadata"].get("labels") or {}).get(label) == "0" and _phase(pod) != "Pending"
        ),
        None,
    )


def _end(train_job: Document | None) -> End | None:
    if train_job is None:
        return "absent"
    true = {one["type"] for one in conditions(train_job) if one["status"] == "True"}
    return next((end for kind, end in _ENDS.items() if kind in true), None)


def _phases(observed: Observed, found: Nodes, done: Progress | None, end: End | None) -> Iterator[str]:
    """The first that holds."""
    if end is not None:
        yield {"absent": "there is no such TrainJob"}.get(end, end)
    if not observed.pods:
        yield "waiting for pods"
    unplaced = [pod for pod in observed.pods if not pod["spec"].get("nodeName")]
    if unplaced and found.asked:
        stages = ", ".join(f"{count} {word}" for word, count in found.stages)
        yield f"capacity: {found.asked} nodes asked for, {stages}"
    if unplaced:
        yield f"capacity: {len(unplaced)} of {len(observed.pods)} pods have no node"
    starting = [pod for pod in observed.pods if _phase(pod) == "Pending"]
    if starting:
        yield f"start: {len(starting)} of {len(observed.pods)} pods fetch their image or prepare"
    if done is None:
        yield "start: links are probed, model and data are read"
    yield "training"


def _phase(pod: Document) -> str:
    return str((pod.get("status") or {}).get("phase", "Pending"))
