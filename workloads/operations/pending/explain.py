"""From what was observed to why each pod of a job waits. Pure."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from workloads.operations.pending.observed import KARPENTER, POOL_LABEL, Document, Observed, condition, conditions
from workloads.operations.pending.words import (
    Reason,
    capacity_reason,
    launch_reason,
    no_type_reason,
    node_class_reason,
    refusal_reason,
    reservation_reason,
    waiting_reason,
)

_JOINS_S = 600
"""A GPU node has joined long before; Karpenter ends it after 900 s."""
_SPEAKS_S = 60
"""Karpenter answers a pod within its batch window of 10 s, and starts within 20."""
_DERIVED = {"Ready", "ValidationSucceeded"}
"""Conditions of a node class that are false because another one is."""
_RUNS = {"Running", "Succeeded"}

_TAKEN_ALONG = {1, 143}
"""How a torchrun ends that lost its peers, and what SIGTERM ends; the trainer's own codes tell more."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One reason, and the pods that wait for it."""

    sentence: str
    remedy: str
    pods: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Pods by phase, and why those wait that do. `is_explained`: there is a job, and no pod waits without a reason."""

    job: str
    phases: Mapping[str, int]
    findings: tuple[Finding, ...]
    is_explained: bool


def explain(job: str, observed: Observed) -> Answer:
    """Why the TrainJob's pods wait; no finding where none does."""
    waiting = [pod for pod in observed.pods if _phase(pod) not in _RUNS]
    if not observed.pods or observed.train_job is None or _ended(observed.train_job):
        whole = _of_job(job, observed)
        findings = () if whole is None else (Finding(sentence=whole.sentence, remedy=whole.remedy, pods=()),)
        is_there = observed.train_job is not None
        return Answer(job=job, phases=_phases(observed), findings=findings, is_explained=is_there)
    by_reason: dict[Reason, list[str]] = {}
    unexplained = False
    for pod in waiting:
        reason = _of_pod(pod, observed)
        unexplained |= reason is None
        by_reason.setdefault(reason or _unknown(), []).append(pod["metadata"]["name"])
    found = (Finding(sentence=r.sentence, remedy=r.remedy, pods=tuple(names)) for r, names in by_reason.items())
    return Answer(job=job, phases=_phases(observed), findings=tuple(found), is_explained=not unexplained)


def _phase(pod: Document) -> str:
    return str((pod.get("status") or {}).get("phase", "Pending"))


def _phases(observed: Observed) -> Mapping[str, int]:
    return Counter(_phase(pod) for pod in observed.pods)


def _ended(train_job: Document) -> bool:
    return any(one["type"] in {"Complete", "Failed"} and one["status"] == "True" for one in conditions(train_job))


def _of_job(job: str, observed: Observed) -> Reason | None:
    if observed.train_job is None:
        return Reason(sentence=f"there is no TrainJob {job}", remedy="run `pulumi up`, or look at the right cluster")
    for one in conditions(observed.train_job):
        if one["status"] == "True" and one["type"] in {"Failed", "Suspended"}:
            return Reason(
                sentence=f"TrainJob {job} is {one['type']} ({one.get('reason')}: {one.get('message')})"
                + _last_words(observed),
                remedy="read its pods' logs, then run `pulumi up` with the next run.attempt"
                if one["type"] == "Failed"
                else f"somebody suspended it: kubectl -n topolab edit trainjob {job}",
            )
    if observed.pods or _ended(observed.train_job):
        return None
    return Reason(
        sentence=f"TrainJob {job} has no pods yet",
        remedy="look whether Trainer and JobSet run: kubectl -n kubeflow-system get pods",
    )


def _last_words(observed: Observed) -> str:
    """How the container that failed of itself ended, and what it said last; "" where no pod is left to tell.

    A gang falls together and the clock of a status has whole seconds, so the code says more than the time.
    """
    ended = [
        (state["exitCode"] in _TAKEN_ALONG, str(state.get("finishedAt")), pod["metadata"]["name"], state)
        for pod in observed.pods
        for container in _containers(pod)
        if (state := (container.get("state") or {}).get("terminated")) and state.get("exitCode")
    ]
    if not ended:
        return ""
    *_, name, state = min(ended, key=lambda one: one[:3])
    said = [line.strip() for line in str(state.get("message") or "").splitlines() if any(map(str.isalpha, line))]
    return f"; pod {name} ended with exit code {state['exitCode']}" + (f": {said[-1]}" if said else "")


def _containers(pod: Document) -> list[Document]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _of_pod(pod: Document, observed: Observed) -> Reason | None:
    if pod["spec"].get("nodeName"):
        return _on_its_node(pod, observed)
    pool_name = (pod["spec"].get("nodeSelector") or {}).get(POOL_LABEL)
    if pool_name is None:
        return _of_scheduler(pod, observed)
    pool = observed.pool(pool_name)
    if pool is None:
        return Reason(
            sentence=f"the pod goes to nodes of NodePool {pool_name} alone, and there is no such pool",
            remedy="run `pulumi up`; if it was deleted by hand, `pulumi refresh` first",
        )
    return _not_ready(pool, observed) or _of_karpenter(pod, pool, observed)


def _on_its_node(pod: Document, observed: Observed) -> Reason:
    name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
    for container in _containers(pod):
        reason = waiting_reason(name, node, (container.get("state") or {}).get("waiting") or {})
        if reason is not None:
            return reason
    event = observed.last_event("Pod", name)
    if event is not None and event.get("type") == "Warning" and event.get("reason") != "FailedScheduling":
        return Reason(
            sentence=f"the pod is on node {node}: {event.get('reason')}: {event.get('message')}",
            remedy=f"look at it: kubectl -n topolab describe pod {name}",
        )
    return Reason(sentence=f"the pod starts on node {node}", remedy="wait: a large image takes minutes to pull")


def _of_scheduler(pod: Document, observed: Observed) -> Reason | None:
    event = observed.last_event("Pod", pod["metadata"]["name"], reason="FailedScheduling")
    said = event["message"] if event else condition(pod, "PodScheduled").get("message")
    if not said:
        return None
    return Reason(
        sentence=f"no node of the cluster takes the pod: {said.partition(' no new claims')[0]}",
        remedy="add a node with what is asked, or take a smaller topology; `topo render` shows what it asks for",
    )


def _not_ready(pool: Document, observed: Observed) -> Reason | None:
    name = pool["metadata"]["name"]
    class_name = pool["spec"]["template"]["spec"]["nodeClassRef"]["name"]
    node_class = observed.node_class(class_name)
    if node_class is None:
        return Reason(
            sentence=f"NodePool {name} launches nodes by EC2NodeClass {class_name}, which isn't there",
            remedy="run `pulumi refresh`, then `pulumi up`",
        )
    false = [one for one in conditions(node_class) if one["status"] == "False"]
    own = [one for one in false if one["type"] not in _DERIVED] or [one for one in false if one["type"] != "Ready"]
    if own:
        return node_class_reason(node_class, own[0])
    unreserved = reservation_reason(node_class)
    if unreserved is not None:
        return unreserved
    invalid = condition(pool, "ValidationSucceeded")
    if invalid["status"] == "False":
        return Reason(
            sentence=f"NodePool {name} is invalid: {invalid.get('message')}",
            remedy="run `pulumi up`: the rendered pool is valid, so it was changed by hand",
        )
    return None


def _of_karpenter(pod: Document, pool: Document, observed: Observed) -> Reason | None:
    name, pool_name = pod["metadata"]["name"], pool["metadata"]["name"]
    event = observed.last_event("Pod", name, by=KARPENTER)
    if event is None:
        age = observed.seconds_since(pod["metadata"]["creationTimestamp"])
        if age < _SPEAKS_S:
            return Reason(sentence="Karpenter hasn't looked at the pod yet", remedy="wait some seconds, ask again")
        return Reason(
            sentence=f"Karpenter has said nothing about the pod for {age:.0f} s",
            remedy="look whether it runs: kubectl -n kube-system get pods -l app.kubernetes.io/name=karpenter",
        )
    if event.get("reason") == "Nominated":
        return _of_nomination(event["message"], observed)
    refusal = _own_refusal(event["message"], pool_name)
    if refusal is not None:
        return refusal_reason(pool, refusal)
    if observed.last_event("NodePool", pool_name, reason="NoCompatibleInstanceTypes"):
        return no_type_reason(pool)
    return None


def _own_refusal(message: str, pool: str) -> str | None:
    """The answer of one pool; Karpenter joins those of all, and names the pool in some of them only."""
    answers = re.split(r"; (?!key )", message.removeprefix("Failed to schedule pod, "))
    own = [answer for answer in answers if _named_pools(answer) <= {pool}]
    return max(own, key=lambda answer: pool in _named_pools(answer), default=None)


def _named_pools(answer: str) -> set[str]:
    offered = re.findall(rf"not in {re.escape(POOL_LABEL)} In \[([^\]]*)\]", answer)
    required = re.findall(rf"requirements=.*?{re.escape(POOL_LABEL)} In \[([^\]]*)\]", answer)
    return {*offered, *required, *re.findall(r"\(NodePool=([^)]*)\)", answer)}


def _of_nomination(message: str, observed: Observed) -> Reason:
    nominated = re.search(r"nodeclaim/([^,\s]+)", message)
    name = nominated[1] if nominated else ""
    claim = observed.claim(name)
    if claim is None:
        given_up = observed.last_event("NodeClaim", name, reason="InsufficientCapacityError")
        if given_up is not None:
            return capacity_reason(name, given_up["message"])
        return Reason(sentence=f"its node is gone ({message})", remedy="wait: Karpenter makes another one")
    launched = condition(claim, "Launched")
    if launched["status"] != "True":
        if launched.get("reason") in (None, "AwaitingReconciliation"):
            return Reason(sentence=f"EC2 is asked for a node (NodeClaim {name})", remedy="wait some seconds")
        return launch_reason(claim, launched)
    return _of_launched(name, claim, observed)


def _of_launched(name: str, claim: Document, observed: Observed) -> Reason:
    seconds = observed.seconds_since(condition(claim, "Launched")["lastTransitionTime"])
    if condition(claim, "Registered")["status"] != "True":
        if seconds < _JOINS_S:
            return Reason(sentence=f"NodeClaim {name} was launched {seconds:.0f} s ago and boots", remedy="wait")
        return Reason(
            sentence=f"the instance of NodeClaim {name} runs for {seconds:.0f} s and hasn't joined the cluster",
            remedy="look whether its role has an access entry of type EC2_LINUX and its subnet a NAT gateway",
        )
    missing = condition(claim, "Initialized")
    if missing["status"] != "True":
        said = missing.get("message") or "its status is awaited"
        return Reason(
            sentence=f"the node of NodeClaim {name} isn't initialised: {said}",
            remedy="wait; after some minutes look at the device plugins: kubectl -n kube-system get daemonsets",
        )
    return Reason(sentence=f"the node of NodeClaim {name} is ready", remedy="wait: the scheduler binds the pod")


def _unknown() -> Reason:
    return Reason(
        sentence="the cluster names no reason",
        remedy="look at it: kubectl -n topolab describe pod, and kubectl -n kube-system logs deployment/karpenter",
    )
