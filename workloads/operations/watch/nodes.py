"""The nodes of a job: how far Karpenter is with each, and what they cost. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from workloads.catalogue.prices import usd_per_hour
from workloads.operations.pending.observed import POOL_LABEL, Document, Observed, condition

_TYPE, _REGION = "node.kubernetes.io/instance-type", "topology.kubernetes.io/region"
_CAPACITY, _RESERVATION = "karpenter.sh/capacity-type", "karpenter.k8s.aws/capacity-reservation-type"
_STAGES = (("Launched", "launched"), ("Registered", "joined"), ("Initialized", "ready"))
"""Conditions of a NodeClaim in the order in which they become true, and our words."""


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """`asked`: NodeClaims. `ready`: with their devices. `spent_usd` counts nodes that are up now, since EC2 gave them.

    The dollars are None where no price is known: spot, other regions, a machine that isn't rented.
    """

    asked: int
    stages: tuple[tuple[str, int], ...]
    usd_per_hour: float | None
    spent_usd: float | None

    @property
    def ready(self) -> int:
        """How many can take a pod."""
        return self.stages[-1][1]


def nodes(observed: Observed) -> Nodes:
    """Those of the pools that the job's pods go to."""
    claims = _claims(observed)
    prices = [_usd_per_hour(one) for one in claims]
    known = [(claim, price) for claim, price in zip(claims, prices, strict=True) if price is not None]
    whole = bool(claims) and len(known) == len(claims)
    return Nodes(
        asked=len(claims),
        stages=tuple((word, sum(_is(one, kind) for one in claims)) for kind, word in _STAGES),
        usd_per_hour=sum(price for one, price in known if _is(one, "Launched")) if whole else None,
        spent_usd=sum(price * _hours(observed, one) for one, price in known) if whole else None,
    )


def _claims(observed: Observed) -> Sequence[Document]:
    pools = {(pod["spec"].get("nodeSelector") or {}).get(POOL_LABEL) for pod in observed.pods} - {None}
    return [one for one in observed.node_claims if (one["metadata"].get("labels") or {}).get(POOL_LABEL) in pools]


def _is(claim: Document, kind: str) -> bool:
    return bool(condition(claim, kind)["status"] == "True")


def _hours(observed: Observed, claim: Document) -> float:
    launched = condition(claim, "Launched")
    if launched["status"] != "True":
        return 0.0
    return max(0.0, observed.seconds_since(launched["lastTransitionTime"])) / 3600


def _usd_per_hour(claim: Document) -> float | None:
    """Spot has no price here, it changes by the hour; nor has a block, it was paid before."""
    labels = claim["metadata"].get("labels") or {}
    unpriced = labels.get(_CAPACITY) == "spot" or labels.get(_RESERVATION) == "capacity-block"
    if unpriced or not {_TYPE, _REGION} <= labels.keys():
        return None
    return usd_per_hour(labels[_TYPE], labels[_REGION])
