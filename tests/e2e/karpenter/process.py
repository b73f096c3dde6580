"""Karpenter's container as a process of this host: what its pod's environment lacks here."""

from collections.abc import Mapping

METRICS, HEALTH = 8080, 8081
"""Container ports of the chart's pod."""


def karpenter_environment(given: Mapping[str, str], ports: Mapping[int, int]) -> dict[str, str]:
    """What is laid over the pod's own variables. `ports`: container port to the port of this host.

    Leader election stays on: a second replica would delete the nodes of the first one's instances, which it
    doesn't know. A pod finds the namespace of the lease in a file that a process of this host has not.
    """
    return {
        "METRICS_PORT": str(ports[METRICS]),
        "HEALTH_PROBE_PORT": str(ports[HEALTH]),
        "LEADER_ELECTION_NAMESPACE": given["SYSTEM_NAMESPACE"],
    }
