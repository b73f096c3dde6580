"""The whole prediction of one arm: memory, bytes, step, tokens, wall clock and dollars."""

from trainer.flops import flops_per_token, mfu
from workloads.planning.cost import cost
from workloads.planning.memory import memory
from workloads.planning.prediction import Prediction, Range
from workloads.planning.probing import probe_s
from workloads.planning.step_time import step_time
from workloads.planning.traffic import traffic
from workloads.planning.work import Work

_GPU_START_S = Range(low=30.0, expected=75.0, high=240.0)
"""From torchrun to the first step: imports, NCCL, model, pinned buffers; 75 s fits the seeds' totals."""
_CPU_START_S = Range(low=6.0, expected=14.0, high=40.0)
_PROBE_TAKES = Range(low=0.3, expected=0.8, high=1.5)
"""Of its budget: sweeps end early where the next size would take too long; communicators come on top."""


def predict(work: Work, *, steps: int, region: str | None) -> Prediction:
    """Everything that is said of `steps` optimizer steps, and the probe before them, before money is spent."""
    step = step_time(work)
    start = _CPU_START_S if work.topology.machine.gpu is None else _GPU_START_S
    probe = _PROBE_TAKES.scaled(probe_s(work.topology, steps))
    wall_clock = step.step_s.scaled(float(steps)).plus(start).plus(probe)
    return Prediction(
        memory=memory(work),
        traffic=traffic(work),
        step=step,
        real_tokens_per_s=_rate(work.real_tokens_per_step, step.step_s),
        mfu=_mfu(work, step.step_s),
        wall_clock_s=wall_clock,
        cost=cost(work.topology, region=region, wall_clock_s=wall_clock),
    )


def _rate(amount: float, seconds: Range) -> Range:
    return Range(low=amount / seconds.high, expected=amount / seconds.expected, high=amount / seconds.low)


def _mfu(work: Work, step_s: Range) -> Range | None:
    peak = work.topology.machine.gpu.peak_flops_per_s if work.topology.machine.gpu else None
    sequences = work.recipe.micro_batch * work.recipe.accumulation * work.topology.ranks
    attended = work.real_tokens_per_step / sequences
    flops = work.real_tokens_per_step / work.topology.ranks * flops_per_token(work.architecture, attended)
    rate = _rate(flops, step_s)
    ends = [mfu(r, peak) for r in (rate.low, rate.expected, rate.high)]
    low, expected, high = ends
    if low is None or expected is None or high is None:
        return None
    return Range(low=low, expected=expected, high=high)
