"""Policy documents as plain data, and who may take a role."""

from collections.abc import Mapping, Sequence

Statement = dict[str, object]
Policy = dict[str, object]


def policy(*statements: Statement) -> Policy:
    """A policy document of these statements."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def allow(
    sid: str,
    actions: Sequence[str],
    resources: Sequence[object],
    conditions: Mapping[str, object] | None = None,
) -> Statement:
    """One Allow statement; resources may be late-bound ARNs."""
    statement: Statement = {
        "Sid": sid,
        "Effect": "Allow",
        "Action": list(actions),
        "Resource": list(resources),
    }
    return statement | ({"Condition": conditions} if conditions else {})


def trust(service: str, actions: Sequence[str] = ("sts:AssumeRole",)) -> Policy:
    """An AWS service may take the role."""
    return policy({"Effect": "Allow", "Principal": {"Service": service}, "Action": list(actions)})


EC2_TRUST = trust("ec2.amazonaws.com")
CONTROL_PLANE_TRUST = trust("eks.amazonaws.com", ("sts:AssumeRole", "sts:TagSession"))
# The agent tags its session with cluster, namespace and service account, so it needs both actions.
POD_IDENTITY_TRUST = trust("pods.eks.amazonaws.com", ("sts:AssumeRole", "sts:TagSession"))
