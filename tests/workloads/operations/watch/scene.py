"""A run as the API server shows it at some moment."""

from datetime import UTC, datetime
from typing import Any

from workloads.operations.pending.observed import Observed

JOB, POOL = "g6e8xl-2x1-efa1-1", "gpu-g6e8xl"
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
LAUNCHED_AT = "2026-11-21T11:30:00Z"
LABELS = {
    "karpenter.sh/nodepool": POOL,
    "node.kubernetes.io/instance-type": "g6e.8xlarge",
    "topology.kubernetes.io/region": "us-east-1",
    "karpenter.sh/capacity-type": "on-demand",
}


def pod(index: int, phase: str = "Pending", node: str | None = None) -> dict[str, Any]:
    labels = {"batch.kubernetes.io/job-completion-index": str(index)}
    spec: dict[str, Any] = {"nodeSelector": {"karpenter.sh/nodepool": POOL}, "containers": [{"name": "node"}]}
    if node:
        spec["nodeName"] = node
    return {
        "metadata": {"name": f"{JOB}-node-0-{index}-abcde", "labels": labels, "creationTimestamp": LAUNCHED_AT},
        "spec": spec,
        "status": {"phase": phase},
    }


def claim(*stages: str, **labels: str) -> dict[str, Any]:
    """A NodeClaim whose conditions of these names are true."""
    conditions = [
        {"type": kind, "status": "True" if kind in stages else "Unknown", "lastTransitionTime": LAUNCHED_AT}
        for kind in ("Launched", "Registered", "Initialized")
    ]
    name = f"{POOL}-{len(stages)}"
    return {"metadata": {"name": name, "labels": {**LABELS, **labels}}, "status": {"conditions": conditions}}


def train_job(end: str | None = None, **status: Any) -> dict[str, Any]:
    conditions = [] if end is None else [{"type": end, "status": "True", "reason": "R", "message": "m"}]
    return {"metadata": {"name": JOB}, "status": {"conditions": conditions, **status}}


READY = ("Launched", "Registered", "Initialized")


def run(*, pods=(), claims=(), job: dict[str, Any] | None = None) -> Observed:
    return Observed(now=NOW, train_job=job, pods=list(pods), node_claims=list(claims))
