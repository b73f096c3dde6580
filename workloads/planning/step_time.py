"""Seconds of one optimizer step, from FLOPs, bytes and the rates of links: a first model with wide ranges.

    step = accumulation x (max(Tg, Tc) + (1 - w) min(Tg, Tc)) + host copies + optimizer + collectives per step

Tg compute and Tc communication of one micro-batch, w the share of the shorter that hides behind the longer.
Constants and their sources stand beside them; the ends of each range are carried through.
"""

from trainer.flops import flops_per_token, parameters
from workloads.planning.prediction import ZERO, Range, Source, StepPrediction
from workloads.planning.traffic import gathers_per_micro_batch, traffic
from workloads.planning.transports import medium, ring_rate_gb_per_s
from workloads.planning.work import Work

_GPU_UTILISATION = Range(low=0.3, expected=0.48, high=0.68)
"""Share of the dense peak: 30-40% L40S, 40-50% A100, 61-66% H200 of published and own runs."""
_DIRECT_UTILISATION = Range(low=0.42, expected=0.64, high=0.72)
"""Of our own engine: 67 to 69% on H200 at their power limit (docs/diary, 2026-11-21); no other chip was tried."""
_CPU_FLOPS_PER_S = Range(low=4e9, expected=20e9, high=60e9)
"""One core with bf16 emulation to AVX-512; own lab runs of a tiny Llama."""
_GPU_HOOKS_S = Range(low=0.003, expected=0.009, high=0.015)
"""ZeRO-3's Python hooks and launches, a layer and micro-batch: about 0.3 s for 32 layers."""
_CPU_HOOKS_S = Range(low=0.003, expected=0.010, high=0.040)
_CALLS_PER_LAYER = 17.0
"""All-gather and reduce-scatter calls of ZeRO-3, a layer and micro-batch (546 in 32 layers)."""
_LATENCY_S = Range(low=30e-6, expected=100e-6, high=300e-6)
_OVERLAP = Range(low=0.0, expected=0.7, high=0.95)
"""Assumed until a run shows it; gloo on CPU overlaps little, because ranks compute and send on one core."""
_CPU_OVERLAP = Range(low=0.0, expected=0.1, high=0.5)
_CPU_ADAM_NS = Range(low=2.5, expected=4.5, high=7.0)
"""CPU Adam with clip and cast, one thread, a parameter: 3.8 (AVX-512) to 6.0 ns (AVX2), assumed."""
_ADAM_DRAM_BYTES = 42.0
_DRAM_BYTES_PER_S = Range(low=70e9, expected=100e9, high=180e9)


def step_time(work: Work, *, ring_gb_per_s: Range | None = None) -> StepPrediction:
    """Predicted seconds of one optimizer step; every range is ordered low <= expected <= high.

    `ring_gb_per_s`: the ring's rate where it was measured; None takes the prior of the topology.
    """
    ring = ring_gb_per_s or ring_rate_gb_per_s(work.topology)
    accumulation = work.recipe.accumulation
    compute = _compute_s(work)
    communication, per_step = _communication_s(work, ring)
    hidden_step, exposed = _overlapped(work, compute, communication)
    exposed_per_step = _exposed_per_step(work, compute, per_step)
    exposed_all = exposed.scaled(accumulation).plus(exposed_per_step)
    copies, optimizer = _host_copy_s(work), _optimizer_s(work)
    total = hidden_step.scaled(accumulation).plus(exposed_per_step).plus(copies).plus(optimizer)
    return StepPrediction(
        step_s=total,
        compute_s=compute.scaled(accumulation),
        communication_s=communication.scaled(accumulation).plus(per_step),
        exposed_communication_s=exposed_all,
        host_copy_s=copies,
        optimizer_s=optimizer,
        slowest_link=medium(work.topology),
        explained=_explained(ring),
    )


def _compute_s(work: Work) -> Range:
    recompute = 4.0 / 3.0 if work.recipe.activation_checkpointing else 1.0
    attended = work.slots_per_micro_batch / work.recipe.micro_batch
    flops = work.slots_per_micro_batch * flops_per_token(work.architecture, attended) * recompute
    gpu = work.topology.machine.gpu
    if gpu is None:
        return _inverse(flops, _CPU_FLOPS_PER_S).plus(_CPU_HOOKS_S.scaled(work.architecture.layers))
    # An unknown card lies between a desktop's and a current data centre's.
    peak = Range(low=2e13, expected=1e14, high=1e15) if gpu.peak_flops_per_s is None else None
    utilisation = _DIRECT_UTILISATION if work.recipe.engine == "direct" else _GPU_UTILISATION
    rate = peak or utilisation.scaled(gpu.peak_flops_per_s or 0.0)
    hooks = _GPU_HOOKS_S.scaled(work.architecture.layers if work.recipe.zero.stage == 3 else 1.0)
    return _inverse(flops, rate).plus(hooks)


def _communication_s(work: Work, ring: Range) -> tuple[Range, Range]:
    """Of one micro-batch, and of one step (ZeRO-1 sends nothing per micro-batch)."""
    if work.topology.ranks == 1:
        return ZERO, ZERO
    sent = traffic(work).collective_bytes_per_rank
    whole = _inverse(sent / 1e9, ring)
    if work.recipe.zero.stage == 1:
        return ZERO, whole
    calls = _LATENCY_S.scaled(_CALLS_PER_LAYER * work.architecture.layers)
    return whole.scaled(1.0 / work.recipe.accumulation).plus(calls), ZERO


def _overlapped(work: Work, compute: Range, communication: Range) -> tuple[Range, Range]:
    """Seconds of one micro-batch, and its communication that compute doesn't hide."""
    w = _CPU_OVERLAP if work.topology.machine.gpu is None else _OVERLAP

    def both(tg: float, tc: float, hidden: float) -> float:
        return max(tg, tc) + (1.0 - hidden) * min(tg, tc)

    step = Range(
        low=both(compute.low, communication.low, w.high),
        expected=both(compute.expected, communication.expected, w.expected),
        high=both(compute.high, communication.high, w.low),
    )
    exposed = sorted((step.low - compute.low, step.expected - compute.expected, step.high - compute.high))
    return step, Range(low=exposed[0], expected=step.expected - compute.expected, high=exposed[2])


def _exposed_per_step(work: Work, compute: Range, per_step: Range) -> Range:
    """What the passes don't hide of collectives that run once a step.

    DeepSpeed: two thirds of them (the gradients) can run behind two thirds of a micro-batch (its backward); 0.56 of
    that was hidden at 25 Gbit/s on four H200 (docs/diary, 2026-11-21). Our own engine: the gradients' half behind
    the last backward pass, the weights' half behind the next forward pass; 0.7 of that at 25 Gbit/s on two H200.
    """
    behind = ((1 / 2, 2 / 3), (1 / 2, 1 / 3)) if work.recipe.engine == "direct" else ((2 / 3, 2 / 3),)

    def exposed(collectives: float, pass_s: float, hidden: float) -> float:
        return collectives - hidden * sum(min(part * collectives, share * pass_s) for part, share in behind)

    expected = 0.8 if work.recipe.engine == "direct" else 0.5
    return Range(
        low=exposed(per_step.low, compute.low, 0.95),
        expected=exposed(per_step.expected, compute.expected, expected),
        high=exposed(per_step.high, compute.high, 0.0),
    )


def _host_copy_s(work: Work) -> Range:
    """Offload over PCIe: own shard in for each gather and accumulation, gradients out."""
    zero, gpu = work.recipe.zero, work.topology.machine.gpu
    if not zero.offload_optimizer or gpu is None:
        return ZERO
    gathers = gathers_per_micro_batch(work.architecture, work.recipe) if zero.offload_parameters else 0.0
    steps = work.recipe.accumulation
    shard = 2.0 * parameters(work.architecture) / work.topology.ranks / 1e9
    moved = (gathers * steps + steps - 1 + 0.5 * (steps + 2)) * shard
    low, expected, high = gpu.host_copy_gb_per_s
    return _inverse(moved, Range(low=low, expected=expected, high=high))


def _optimizer_s(work: Work) -> Range:
    shard = parameters(work.architecture) / work.topology.ranks
    gpu = work.topology.machine.gpu
    if gpu is not None and not work.recipe.zero.offload_optimizer:
        return _inverse(28.0 * shard / 1e9, Range(low=0.3, expected=0.7, high=0.95).scaled(gpu.hbm_gb_per_s))
    if gpu is None or (work.recipe.omp_threads is None and work.topology.gpus_per_pod > 1):
        return _CPU_ADAM_NS.scaled(shard * 1e-9)
    ranks_on_host = work.topology.gpus_per_pod * work.topology.pods_per_node
    return _inverse(shard * ranks_on_host * _ADAM_DRAM_BYTES, _DRAM_BYTES_PER_S)


def _inverse(amount: float, rate: Range) -> Range:
    return Range(low=amount / rate.high, expected=amount / rate.expected, high=amount / rate.low)


def _explained(rate: Range) -> tuple[Source, ...]:
    return (
        Source(
            formula="accumulation x (max(Tg, Tc) + (1 - w) min(Tg, Tc)) + host copies + optimizer",
            source="priors beside the code, not yet calibrated",
        ),
        Source(
            formula=f"ring at {rate.low:.3g} to {rate.high:.3g} GB/s, expected {rate.expected:.3g}",
            source="seeds' totals, published nccl-tests, or the dialled rate",
        ),
    )
