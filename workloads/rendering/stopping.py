"""How long an interrupted job may take to end: the step that it is in, then what it saves."""

import math

from trainer.flops import parameters
from workloads.planning.plan import Plan
from workloads.rendering.storage import FSX_CAPACITY_GIB

SPOT_NOTICE_S = 120
"""EC2 reclaims a spot instance two minutes after its notice, whatever a pod asks for (EC2 User Guide)."""

SHUTDOWN_VARIABLE = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
"""Seconds that torchrun leaves its workers after SIGTERM, 30 where nothing says otherwise.

The variable and not the option --shutdown-timeout: both came in 2026 (pytorch pull request 172596), and a
torchrun before them, such as 2.8 of the seeds' image, refuses the option and overlooks the variable. Such a
torchrun keeps its 30 s: an interrupted step that is longer is lost there. A worker that fails by itself
still ends its peers after 30 s.
"""

_LEAST_S = 120
_MOST_BLOCK_S = 600
"""Karpenter drains 10 minutes before EC2 begins to take a capacity block's nodes (tasks/odcrs of v1.14.1)."""
_MOST_S = 900
"""Under the 30 minutes of the pool; a longer wait for one step costs more than the step is worth."""
_STEPS = 2
"""Ranks agree to stop in a step's reduction; a signal that comes after it waits for the next one."""
_RECORD_S = 60
"""Logs of every rank, the record, and its way to the bucket."""
_LAUNCHER_S = 15
"""torchrun's own end, so that it kills its workers and says so before the kubelet kills it."""

_CHECKPOINT_BYTES_PER_PARAMETER = 14
"""Adam's two moments and the 32-bit weights, 12 bytes, and the 16-bit weights."""
_LUSTRE_MB_PER_S_PER_TIB = 200
"""Baseline of SCRATCH_2, the slower of the two kinds (FSx for Lustre user guide)."""


def grace_s(plan: Plan) -> int:
    """terminationGracePeriodSeconds: two steps at the upper predicted time, and saving; on spot the notice.

    In a capacity block no more than what Karpenter's drain leaves.
    """
    if plan.capacity == "spot":
        return SPOT_NOTICE_S
    wanted = _STEPS * plan.prediction.step.step_s.high + _checkpoint_s(plan) + _RECORD_S + _LAUNCHER_S
    most = _MOST_BLOCK_S if plan.capacity == "capacityBlock" else _MOST_S
    return min(max(math.ceil(wanted), _LEAST_S), most)


def shutdown_s(plan: Plan) -> int:
    """What torchrun leaves its workers of the pod's grace."""
    return grace_s(plan) - _LAUNCHER_S


def _checkpoint_s(plan: Plan) -> float:
    if plan.platform.storage.fsx == "none" or not plan.saves:
        return 0.0
    rate = _LUSTRE_MB_PER_S_PER_TIB * 1e6 * FSX_CAPACITY_GIB / 1024
    return parameters(plan.config.model.architecture) * _CHECKPOINT_BYTES_PER_PARAMETER / rate
