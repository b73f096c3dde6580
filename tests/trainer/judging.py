"""Judging a synthetic run, with some of its evidence replaced."""

from tests.record_factory import (
    Made,
    config_of,
    facts_of,
    nccl_logs_of,
    steps_of,
)
from trainer.config import TrainConfig
from trainer.record import LinkProbe, Probe, RankFacts, StepLine, Verdict
from trainer.verdict import Start, judge, transports


def judged(
    made: Made,
    *,
    ranks: list[RankFacts] | None = None,
    steps: dict[int, list[StepLine]] | None = None,
    logs: dict[int, str] | None = None,
    config: TrainConfig | None = None,
    probe: LinkProbe | None = None,
    resumed_after_step: int = 0,
    ranks_probe: Probe | None = None,
) -> Verdict:
    config = config or config_of(made)
    ranks = facts_of(made) if ranks is None else ranks
    seen = transports(config, ranks, nccl_logs_of(made) if logs is None else logs)
    steps = steps_of(made) if steps is None else steps
    return judge(
        config,
        made.status,
        made.link_shaping,
        ranks,
        seen,
        steps,
        start=Start(resumed_after_step=resumed_after_step, link_probe=probe, probe=ranks_probe),
    )


def only_reason(verdict: Verdict, outcome: str) -> str:
    assert verdict.outcome == outcome, verdict
    assert len(verdict.reasons) == 1, verdict
    return verdict.reasons[0]
