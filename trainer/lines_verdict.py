"""The part of the verdict that step lines decide: all there, of the config's phases and sizes, losses equal."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from trainer.config import TrainConfig
from trainer.findings import Findings
from trainer.record import Phase, StepLine

StepsByRank = Mapping[int, Sequence[StepLine]]

LOSS_RELATIVE_TOLERANCE = 1e-6
"""Every rank writes the same all-reduced mean; only its way through float32 may differ."""


def judge_lines(config: TrainConfig, steps_by_rank: StepsByRank, resumed_after_step: int) -> Findings:
    """Hold the lines to the config; of each kind of fault a rank (of losses a run) tells its first.

    A start that resumed begins after its checkpoint.
    """
    findings = Findings()
    wanted = range(resumed_after_step + 1, config.steps + 1)
    if resumed_after_step and not config.resume:
        findings.wrong.append(f"the run began after step {resumed_after_step}, and its config lets it resume nothing")
    for rank in range(config.ranks):
        lines = steps_by_rank.get(rank, ())
        faults = (_absent(lines, wanted), _phase_fault(config, lines, wanted.start), _size_fault(config, lines))
        findings.wrong += [f"rank {rank} {fault}" for fault in faults if fault]
    if config.steps and all(line.phase != "timed" for lines in steps_by_rank.values() for line in lines):
        findings.missing.append(f"no step is timed: {config.warmup_steps} of {config.steps} steps are warm-up")
    _judge_losses(config, steps_by_rank, findings)
    return findings


def _absent(lines: Sequence[StepLine], wanted: range) -> str | None:
    written = [line.step for line in lines]
    if written == list(wanted):
        return None
    span = f"{written[0]} to {written[-1]}" if written else "none"
    return f"wrote {len(written)} step lines ({span}), steps {wanted.start} to {wanted.stop - 1} are due"


def _phase_fault(config: TrainConfig, lines: Sequence[StepLine], first: int) -> str | None:
    for line in lines:
        due: Phase = "warmup" if line.step < first + config.warmup_steps else "timed"
        if line.phase != due:
            return f"wrote step {line.step} as `{line.phase}`, by the config's {config.warmup_steps} warm-up steps " \
                   f"it is `{due}`"  # fmt: skip
    return None


def _size_fault(config: TrainConfig, lines: Sequence[StepLine]) -> str | None:
    """Packed blocks fill every slot. Lines pad to the longest of their micro-batch, and the shortest is the
    boundary token alone."""
    sequences = config.recipe.micro_batch * config.recipe.accumulation
    full = sequences * config.sequence_length
    for line in lines:
        real, slots = line.real_tokens, line.real_tokens + line.padded_tokens
        if config.data.feed == "packed":
            if (real, line.padded_tokens) != (full, 0):
                return f"trained {real} real and {line.padded_tokens} padded tokens in step {line.step}, " \
                       f"{full} real ones are due"  # fmt: skip
        elif slots > full or real < sequences or slots % config.recipe.micro_batch:
            return f"trained {real} real tokens in {slots} slots in step {line.step}; {sequences} lines of at most " \
                   f"{config.sequence_length} tokens can't give that"  # fmt: skip
    return None


def _judge_losses(config: TrainConfig, steps_by_rank: StepsByRank, findings: Findings) -> None:
    by_step: dict[int, dict[int, StepLine]] = defaultdict(dict)
    for rank, lines in steps_by_rank.items():
        for line in lines:
            by_step[line.step][rank] = line
    for step, lines_of_step in sorted(by_step.items()):
        fault = _finite_fault(config, lines_of_step) or _loss_fault(lines_of_step, config.sequences_per_step)
        if fault:
            # Later steps usually repeat the first fault.
            findings.wrong.append(f"step {step}: {fault}")
            return


def _finite_fault(config: TrainConfig, lines: Mapping[int, StepLine]) -> str | None:
    if all(line.finite for line in lines.values()):
        return None
    then = "its update was left out" if config.on_nan_loss == "skip" else "the run ended there"
    return f"the loss or the gradient was not finite, and {then}"


def _loss_fault(lines: Mapping[int, StepLine], sequences: int) -> str | None:
    """What is wrong with one step's losses. The first token of each sequence is no target, so a step of
    blank lines has tokens and no loss."""
    tokens = sum(line.real_tokens for line in lines.values())
    losses = {rank: line.loss for rank, line in lines.items()}
    for rank, loss in losses.items():
        if loss is None and tokens > sequences:
            return f"rank {rank} has no finite loss though {tokens} real tokens were trained"
        if loss is not None and not math.isfinite(loss):
            return f"the loss of rank {rank} is {loss}"
    known = {rank: loss for rank, loss in losses.items() if loss is not None}
    if not known:
        return None
    low, high = min(known, key=lambda r: known[r]), max(known, key=lambda r: known[r])
    if math.isclose(known[low], known[high], rel_tol=LOSS_RELATIVE_TOLERANCE):
        return None
    return f"rank {low} has loss {known[low]:.6f}, rank {high} {known[high]:.6f}; all ranks must agree"
