"""From step lines and rank facts to the figures of the timed window; anyone can recompute them."""

import statistics
from collections.abc import Iterable, Mapping, Sequence

from trainer.config import TrainConfig
from trainer.flops import flops_per_token, mfu
from trainer.record import RankFacts, StepLine, Summary
from trainer.sent import sent_per_step


def summarize(
    config: TrainConfig, steps_by_rank: Mapping[int, Sequence[StepLine]], ranks: Sequence[RankFacts]
) -> Summary:
    """Figures of the steps that every rank timed; None where there is nothing to compute them from."""
    timed = timed_steps(steps_by_rank)
    seconds = step_seconds(timed)
    total_s = sum(seconds)
    lines = [line for step in timed for line in step]
    real = sum(line.real_tokens for line in lines)
    slots = real + sum(line.padded_tokens for line in lines)
    flops = _flops_per_s_per_rank(config, real, len(timed), total_s)
    losses = [step[0].loss for step in timed]
    return Summary(
        timed_steps=len(timed),
        step_s_median=percentile(seconds, 50),
        step_s_p10=percentile(seconds, 10),
        step_s_p90=percentile(seconds, 90),
        step_s_mean=statistics.fmean(seconds) if seconds else None,
        real_tokens_per_s=real / total_s if seconds else None,
        slots_per_s=slots / total_s if seconds else None,
        model_flops_per_s_per_rank=flops,
        mfu=None if flops is None else mfu(flops, config.peak_flops_per_s),
        data_wait_share=_data_wait_share(timed, total_s),
        first_loss=next((loss for loss in losses if loss is not None), None),
        last_loss=next((loss for loss in reversed(losses) if loss is not None), None),
        sent_bytes_per_pod_and_step=sent_bytes_per_pod_and_step(config, ranks) if timed else None,
    )


def timed_steps(steps_by_rank: Mapping[int, Sequence[StepLine]]) -> list[tuple[StepLine, ...]]:
    """The timed steps in order, each with one line a rank; a step that a rank lacks is left out.

    A rank without any line is no hindrance: of a job that isn't ours often one alone tells of its steps.
    """
    of_rank = [
        {line.step: line for line in lines if line.phase == "timed"}
        for _, lines in sorted(steps_by_rank.items())
        if lines
    ]
    if not of_rank:
        return []
    shared = set(of_rank[0]).intersection(*of_rank[1:])
    return [tuple(lines[step] for lines in of_rank) for step in sorted(shared)]


def step_seconds(timed: Iterable[Sequence[StepLine]]) -> list[float]:
    """One time a step: the slowest rank's, because the others wait for it."""
    return [max(line.seconds for line in step) for step in timed]


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Linear interpolation between closest ranks (Hyndman and Fan 1996, type 7; numpy's default)."""
    if not values:
        return None
    ordered = sorted(values)
    position = (len(ordered) - 1) * percent / 100
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def sent_bytes_per_pod_and_step(config: TrainConfig, ranks: Sequence[RankFacts]) -> float | None:
    """Bytes that a pod sent in one timed step on the counter that the expectations name, median over pods.

    One rank speaks for its pod: all ranks of a pod see the same devices.
    """
    expected = config.expectations.bytes_sent
    if expected is None:
        return None
    sent = [sent_per_step(facts, expected.counter) for facts in ranks if facts.local_rank == 0]
    known = [each for each in sent if each is not None]
    return statistics.median(known) if known and len(known) == len(sent) else None


def _flops_per_s_per_rank(config: TrainConfig, real: int, steps: int, total_s: float) -> float | None:
    if not total_s or config.command is not None:
        return None
    sequences = steps * config.sequences_per_step
    # A packed token attends to its block; a line's to its line, which on average holds this many.
    attended = config.sequence_length if config.data.feed == "packed" else real / sequences
    return real * flops_per_token(config.model.architecture, attended) / total_s / config.ranks


def _data_wait_share(timed: Sequence[Sequence[StepLine]], total_s: float) -> float | None:
    """Share of the timed window in which the rank that waited longest for data waited."""
    if not total_s:
        return None
    return sum(max(line.data_wait_s for line in step) for step in timed) / total_s
