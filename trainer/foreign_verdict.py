"""What a job that isn't ours is held to: its links and its steps. No formula knows its bytes. Pure."""

from collections.abc import Mapping, Sequence

from trainer.config import TrainConfig
from trainer.findings import Findings
from trainer.record import RankFacts, StepLine
from trainer.sent import is_window, sent_by_device, stretches


def judge_foreign(
    config: TrainConfig, ranks: Sequence[RankFacts], steps_by_rank: Mapping[int, Sequence[StepLine]]
) -> Findings:
    """Whether steps were told of and their losses are numbers, and which interface carried the bytes."""
    findings = Findings()
    lines = [line for of_rank in steps_by_rank.values() for line in of_rank]
    if not any(line.phase == "timed" for line in lines):
        findings.missing.append(
            f"no step is timed: the job told of {len(lines)} and {config.warmup_steps} are warm-up; call "
            'trainer.mark.mark after each step, or print {"step": 1, ...}'
        )
    wrong = next((line for line in lines if not line.finite), None)
    if wrong is not None:
        findings.wrong.append(f"step {wrong.step}: the loss is no number")
    if config.pods > 1:
        _judge_carriers(config, ranks, findings)
    return findings


def _judge_carriers(config: TrainConfig, ranks: Sequence[RankFacts], findings: Findings) -> None:
    wanted, other = ("efa", "interface") if config.expectations.efa_devices_per_pod else ("interface", "efa")
    for facts in ranks:
        if facts.local_rank:
            continue
        if not is_window(facts.counters):
            findings.missing.append(f"pod {facts.pod} sampled no byte counters between two steps")
            continue
        carried, aside = (_sent(facts, kind) for kind in (wanted, other))
        if carried is None:
            findings.missing.append(f"pod {facts.pod} lacks {wanted} counters")
        elif not carried and not aside:
            findings.missing.append(f"pod {facts.pod} sent nothing that a counter saw in the timed steps")
        elif carried <= (aside or 0):
            findings.wrong.append(
                f"pod {facts.pod} sent {carried / 1e6:.3f} MB by its {wanted} counters and {(aside or 0) / 1e6:.3f} MB "
                f"by its {other} counters in the timed steps; the plan's link is the first"
            )


def _sent(facts: RankFacts, kind: str) -> int | None:
    assert kind in ("efa", "interface")
    found = [sent_by_device(facts, "efa" if kind == "efa" else "interface", s) for s in stretches(facts.counters)]
    known = [each for each in found if each is not None]
    return sum(sum(each.values()) for each in known) if len(known) == len(found) else None
