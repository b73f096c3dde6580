"""What the words of Karpenter, EC2 and the kubelet mean for us: one sentence, one remedy.

Read in the sources of Karpenter provider AWS v1.14.1 (pkg/controllers/nodeclass, pkg/errors) and its core
v1.14.1 (pkg/controllers/provisioning/scheduling, pkg/controllers/nodeclaim/lifecycle), and heard from the
real controller in tests/e2e/test_karpenter.py.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from workloads.operations.pending.observed import POOL_LABEL, Document
from workloads.operations.pending.observed import condition as condition_of

_REFRESH = "run `pulumi refresh`, then `pulumi up`"
_RIGHTS = "compare the rights of Karpenter's role with infra/karpenter_policies.py, then run `pulumi up`"


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why, and what to do."""

    sentence: str
    remedy: str


_NODE_CLASS = {
    "SubnetsNotFound": ("finds no subnet {subnets}", f"{_REFRESH}: it was deleted, or belongs to another account"),
    "SecurityGroupsNotFound": ("finds no security group {groups}", f"{_REFRESH}: it belongs to the cluster"),
    "AMINotFound": ("finds no image {images}", "look whether that release is published in the stack's region"),
    "PlacementGroupNotFound": ("finds no placement group {group}", f"{_REFRESH}: somebody deleted it"),
    "PlacementGroupResolutionFailed": ("finds no placement group {group}", f"{_REFRESH}: somebody deleted it"),
}
"""Reason of a false condition of an EC2NodeClass: what it says, and the remedy."""

_LAUNCH = {
    "VCPULimitExceeded": (
        "the account's vCPU quota of EC2 is used up",
        "end what else runs in the region, or ask for more in Service Quotas (the README names the codes)",
    ),
    "SpotQuotaExceeded": (
        "the account's quota of spot vCPUs is used up",
        "ask for more in Service Quotas, or set platform.capacity.mode to onDemand",
    ),
    "AccountPendingVerification": ("AWS still verifies the account for this region", "wait some hours; AWS mails"),
    "InsufficientFreeAddressesInSubnet": ("the GPU subnet has no free address", "choose a wider platform.vpcCidr"),
    "Unauthorized": ("Karpenter's role may not launch instances", _RIGHTS),
    "AMIAuthorizationFailure": ("the account may not use the image", _RIGHTS),
    "InstanceProfileNameInvalid": ("the instance profile of the GPU nodes is gone", _REFRESH),
    "SecurityGroupSubnetVPCMismatch": ("security group and subnet lie in two VPCs", _REFRESH),
    "RequestLimitExceeded": ("EC2 throttles the account's calls", "wait; Karpenter tries again by itself"),
}
"""Reason of a NodeClaim that isn't launched: what EC2 refused, and the remedy."""

_CONTAINER = {
    "ErrImagePull": "look at platform.image, and whether the nodes may pull it",
    "ImagePullBackOff": "look at platform.image, and whether the nodes may pull it",
    "InvalidImageName": "correct platform.image",
    "CreateContainerConfigError": "run `pulumi up`: a Secret or ConfigMap of the pod is missing",
    "CrashLoopBackOff": "read its log: kubectl -n topolab logs {pod} --previous",
}
"""Reason of a waiting container, and the remedy."""

_RESOURCES = re.compile(r"resources=(\{.*\})")
_TAINT = re.compile(r"did not tolerate taint \(taint=([^)]*)\)")
_KEY = re.compile(
    r"key (\S+), \1 ((?:Not)?In|Exists|DoesNotExist|Gt|Lt)(?: \[([^\]]*)\])? not in \1 (\w+)(?: \[([^\]]*)\])?"
)


def node_class_reason(node_class: Document, condition: Document) -> Reason:
    """Of a condition that isn't true."""
    name, spec = node_class["metadata"]["name"], node_class["spec"]
    known = _NODE_CLASS.get(condition.get("reason", ""))
    if known is None:
        said = f"{condition['type']} is {condition['status']}, {_said(condition)}"
        return Reason(
            sentence=f"EC2NodeClass {name}: {said}", remedy=f"look at it: kubectl describe ec2nodeclass {name}"
        )
    selected = {
        "subnets": _terms(spec.get("subnetSelectorTerms")),
        "groups": _terms(spec.get("securityGroupSelectorTerms")),
        "images": _terms(spec.get("amiSelectorTerms")),
        "group": _terms([spec.get("placementGroupSelector") or {}]),
    }
    return Reason(sentence=f"EC2NodeClass {name} {known[0].format(**selected)}", remedy=known[1])


def reservation_reason(node_class: Document) -> Reason | None:
    """Of a node class that is ready and found none of its reservations: Karpenter calls that ready, and waits."""
    wanted = node_class["spec"].get("capacityReservationSelectorTerms")
    looked = condition_of(node_class, "CapacityReservationsReady")["status"] == "True"
    if not wanted or not looked or node_class["status"].get("capacityReservations"):
        return None
    return Reason(
        sentence=f"EC2NodeClass {node_class['metadata']['name']} finds no active reservation {_terms(wanted)}",
        remedy="`topo preflight STACK` says what became of it, and with --reserve makes another; then run `pulumi up`",
    )


def launch_reason(claim: Document, condition: Document) -> Reason:
    """Of a NodeClaim that EC2 gave no instance."""
    name = claim["metadata"]["name"]
    sentence, remedy = _LAUNCH.get(
        condition.get("reason", ""), (_said(condition), f"look at it: kubectl describe nodeclaim {name}")
    )
    return Reason(sentence=f"EC2 launches no node for NodeClaim {name}: {sentence}", remedy=remedy)


def capacity_reason(claim: str, message: str) -> Reason:
    """Of a NodeClaim that was given up for want of capacity."""
    return Reason(
        sentence=f"EC2 has no capacity for NodeClaim {claim} ({_shortened(message)})",
        remedy="wait, Karpenter tries again; or `topo preflight STACK --reserve` asks zone after zone for all nodes",
    )


def waiting_reason(pod: str, node: str, waiting: Mapping[str, str]) -> Reason | None:
    """Of a container that its node can't start; None where it merely takes its time."""
    remedy = _CONTAINER.get(waiting.get("reason", ""))
    if remedy is None:
        return None
    sentence = f"the pod is on node {node}, but its container isn't: {_said(waiting)}"
    return Reason(sentence=sentence, remedy=remedy.format(pod=pod))


def refusal_reason(pool: Document, refusal: str) -> Reason:
    """Of one NodePool's answer to a pod, in Karpenter's event."""
    name = pool["metadata"]["name"]
    if taint := _TAINT.search(refusal):
        return Reason(
            sentence=f"the pod doesn't tolerate the taint {taint[1]} of NodePool {name}",
            remedy="run `pulumi up`: the rendered runtime tolerates it, so pod or pool were changed by hand",
        )
    if "exceed limits" in refusal or "limits have been exhausted" in refusal:
        return Reason(
            sentence=f"NodePool {name} may not grow: its limits are {_limits(pool)}",
            remedy="end the job that holds its nodes, or run `pulumi up` for a topology with as many nodes as this one",
        )
    if mismatch := _KEY.search(refusal):
        return _mismatch_reason(name, mismatch)
    if "enough resources" in refusal:
        asked = _RESOURCES.search(refusal)
        return Reason(
            sentence=f"no instance type of NodePool {name} holds a pod that asks for {asked[1] if asked else 'this'}",
            remedy="ask for less: `topo catalogue` lists what an instance type has",
        )
    if "offering" in refusal:
        return Reason(
            sentence=f"AWS doesn't offer the instance type of NodePool {name} in {_required(pool)}",
            remedy="take another platform.zone or capacity mode",
        )
    return Reason(
        sentence=f"NodePool {name} refuses the pod: {_shortened(refusal)}",
        remedy=f"look at it: kubectl describe nodepool {name}",
    )


def no_type_reason(pool: Document) -> Reason:
    """Of a NodePool whose own requirements exclude every instance type."""
    return Reason(
        sentence=f"no instance type fulfils what NodePool {pool['metadata']['name']} requires: {_required(pool)}",
        remedy="look whether the type is spelled right and offered in that zone, then run `pulumi up`",
    )


def _mismatch_reason(name: str, mismatch: re.Match[str]) -> Reason:
    key, _, wanted, _, offered = mismatch.groups()
    if key == POOL_LABEL:
        return Reason(
            sentence=f"the pod wants NodePool {wanted}, and Karpenter offers {offered}",
            remedy=f"look whether NodePool {wanted} is Ready: kubectl get nodepools",
        )
    return Reason(
        sentence=f"the pod wants {key} {wanted or 'set'}, and NodePool {name} has {offered or 'none'}",
        remedy="run `pulumi up`: both are rendered from one topology, so pod or pool were changed by hand",
    )


def _said(source: Mapping[str, str]) -> str:
    return ": ".join(part for part in (source.get("reason"), _shortened(source.get("message") or "")) if part)


def _shortened(message: str, limit: int = 200) -> str:
    one_line = " ".join(message.split())
    return one_line if len(one_line) <= limit else f"{one_line[: limit - 3]}..."


def _terms(terms: object) -> str:
    listed = terms if isinstance(terms, list) else []
    return ", ".join(str(value) for term in listed for value in term.values()) or "at all"


def _limits(pool: Document) -> str:
    limits = pool["spec"].get("limits") or {}
    return ", ".join(f"{key}: {value}" for key, value in sorted(limits.items())) or "none"


def _required(pool: Document) -> str:
    listed = pool["spec"]["template"]["spec"].get("requirements") or ()
    return "; ".join(f"{one['key']} {one['operator']} {', '.join(one.get('values') or ())}".strip() for one in listed)
