"""What every platform offers to a run."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as kubernetes

from workloads.rendering.bindings import Bindings


@dataclass(frozen=True, kw_only=True)
class Foundation:
    """`operator`: Trainer's release, which outlives runtime and job. `needs`: what outlives their namespace.

    `records`: URI that a person can collect from. `kubeconfig`: None on a cluster that isn't ours.
    """

    provider: kubernetes.Provider
    bindings: Bindings
    operator: pulumi.Resource
    needs: Sequence[pulumi.Resource]
    records: pulumi.Input[str]
    kubeconfig: pulumi.Output[str] | None
