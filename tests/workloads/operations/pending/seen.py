"""A cluster's objects as the real Karpenter 1.14.1 left them: one pool a fault, one pod a pool."""

import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.source import ROOT
from workloads.operations.pending.observed import Observed

Objects = dict[str, list[dict[str, Any]]]
_TEXT = (ROOT / "tests/fixtures/karpenter_pending.json").read_text()
NOW = datetime(2026, 11, 21, 15, 38, tzinfo=UTC)
"""Some seconds after the last event."""
JOB = "g6e12xl-4x4-efa1-1"


def seen(fault: str, change: Callable[[Objects], object] = lambda _: None, now: datetime = NOW) -> Observed:
    """The cluster with the pod of that fault alone, changed where a test says how."""
    objects: Objects = copy.deepcopy(json.loads(_TEXT))
    objects["pods"] = [pod for pod in objects["pods"] if pod["metadata"]["name"].endswith(f"-{fault}")]
    assert len(objects["pods"]) == 1, fault
    change(objects)
    return Observed(
        now=now,
        train_job={"metadata": {"name": JOB}},
        pods=objects["pods"],
        events=objects["events"],
        node_pools=objects["nodePools"],
        node_classes=objects["nodeClasses"],
        node_claims=objects["nodeClaims"],
    )


def claim_of(objects: Objects, fault: str) -> dict[str, Any]:
    """The NodeClaim of that fault's pool."""
    (found,) = [one for one in objects["nodeClaims"] if one["metadata"]["name"].startswith(f"gpu-g6e12xl-{fault}-")]
    return found


def set_condition(document: dict[str, Any], kind: str, status: str, reason: str, message: str = "") -> None:
    """Replace one condition."""
    kept = [one for one in document["status"]["conditions"] if one["type"] != kind]
    new = {"type": kind, "status": status, "reason": reason, "message": message}
    document["status"]["conditions"] = [*kept, {**new, "lastTransitionTime": "2026-11-21T15:37:50Z"}]
