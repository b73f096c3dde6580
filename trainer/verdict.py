"""Which transports a run used, and whether the run is what its plan promised.

Pure: the run itself, and anyone who holds its record, compute the same verdict from the same lines.
Wrong evidence makes a run INVALID, missing evidence UNPROVEN; a VALID verdict has no reasons.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from trainer.config import LinkExpectation, TrainConfig
from trainer.contract import LinkClass
from trainer.counters_verdict import efa_number, judge_counters, judge_efa_use, judge_probe, judge_sweeps
from trainer.findings import Findings
from trainer.foreign_verdict import judge_foreign
from trainer.lines_verdict import judge_lines
from trainer.record import (
    Hang,
    LinkProbe,
    LinkShaping,
    Probe,
    RankFacts,
    Status,
    StepLine,
    Transport,
    Verdict,
)
from trainer.transports import link_class, transports

__all__ = ["Start", "judge", "judge_links", "transports"]


@dataclass(frozen=True, kw_only=True)
class Start:
    """What was known of a start of the job before its first step."""

    resumed_after_step: int
    link_probe: LinkProbe | None
    """None: nothing was sent flat out, which proves nothing."""
    probe: Probe | None


def judge_links(config: TrainConfig, ranks: Sequence[RankFacts], transports: Sequence[Transport]) -> Verdict:
    """The part of the verdict that is known once all links are up: places, devices, transports."""
    findings = Findings()
    _judge_places(config, ranks, findings)
    _judge_devices(config, ranks, transports, findings)
    _judge_transports(config, transports, findings)
    return findings.verdict()


def judge(
    config: TrainConfig,
    status: Status,
    link_shaping: LinkShaping,
    ranks: Sequence[RankFacts],
    transports: Sequence[Transport],
    steps_by_rank: Mapping[int, Sequence[StepLine]],
    *,
    start: Start,
    hang: Hang | None = None,
) -> Verdict:
    """The verdict on a finished run."""
    findings = Findings()
    _judge_status(config, status, steps_by_rank, findings)
    findings.wrong += [] if hang is None else [hang.sentence]
    _judge_places(config, ranks, findings)
    if config.command is None:
        findings.add(judge_lines(config, steps_by_rank, start.resumed_after_step))
    link_findings = Findings()
    _judge_devices(config, ranks, transports, link_findings)
    _judge_transports(config, transports, link_findings)
    link_findings.add(judge_efa_use(config, ranks, transports))
    if config.command is not None:
        link_findings.add(judge_foreign(config, ranks, steps_by_rank))
    elif config.steps:
        timed_after = start.resumed_after_step + config.warmup_steps
        link_findings.add(judge_counters(config, link_shaping, ranks, timed_after))
    link_findings.add(judge_probe(config, link_shaping, start.link_probe))
    if config.command is None:
        link_findings.add(judge_sweeps(config, start.probe))
    findings.add(link_findings if link_shaping != "unshaped" else link_findings.demoted())
    _judge_shaping(config, link_shaping, findings)
    return findings.verdict()


def _judge_status(
    config: TrainConfig,
    status: Status,
    steps_by_rank: Mapping[int, Sequence[StepLine]],
    findings: Findings,
) -> None:
    if status != "complete":
        last = max((line.step for lines in steps_by_rank.values() for line in lines), default=0)
        findings.wrong.append(f"the run ended as `{status}` after step {last} of {config.steps}")


def _judge_places(config: TrainConfig, ranks: Sequence[RankFacts], findings: Findings) -> None:
    present = {facts.rank for facts in ranks}
    absent = sorted(set(range(config.ranks)) - present)
    if absent or len(ranks) != config.ranks or len(present) != config.ranks:
        findings.wrong.append(
            f"{len(present)} of {config.ranks} ranks left facts"
            + (f"; ranks {', '.join(map(str, absent))} are absent" if absent else "")
        )
        return
    pods = {facts.pod for facts in ranks}
    if len(pods) != config.pods:
        findings.wrong.append(f"the ranks ran in {len(pods)} pods, the plan says {config.pods}")
    nodes = sorted({facts.node for facts in ranks})
    if len(nodes) != config.expectations.nodes:
        findings.wrong.append(
            f"the pods ran on {len(nodes)} nodes ({', '.join(nodes)}), the plan says {config.expectations.nodes}"
        )
    _judge_pairs(config, ranks, findings)


def _judge_pairs(config: TrainConfig, ranks: Sequence[RankFacts], findings: Findings) -> None:
    placed: dict[str, int] = defaultdict(int)
    for one, other in combinations(ranks, 2):
        placed[link_class(one, other)] += 1
    for link in config.expectations.links:
        if placed[link.link_class] != link.pairs:
            findings.wrong.append(
                f"{link.link_class}: the places of the ranks make {placed[link.link_class]} pairs, "
                f"the plan says {link.pairs}"
            )


def _judge_devices(
    config: TrainConfig, ranks: Sequence[RankFacts], transports: Sequence[Transport], findings: Findings
) -> None:
    asked = config.expectations.efa_devices_per_pod
    for facts in ranks:
        if facts.local_rank == 0 and len(facts.efa_devices) != asked:
            findings.wrong.append(
                f"pod {facts.pod} sees {len(facts.efa_devices)} EFA devices"
                f" ({', '.join(facts.efa_devices) or 'none'}), it asked for {asked}"
            )
    _judge_nics(config, ranks, findings)
    used = {number for each in transports if (number := efa_number(each)) is not None}
    beyond = sorted(number for number in used if number >= asked)
    if beyond:
        findings.wrong.append(f"NCCL used EFA device number {beyond[-1]}, counted from 0; each pod asked for {asked}")


def _judge_nics(config: TrainConfig, ranks: Sequence[RankFacts], findings: Findings) -> None:
    """What a pod sees in /sys, NCCL's plugin may still fail to open."""
    asked = config.expectations.efa_devices_per_pod
    for facts in ranks:
        if asked and facts.nccl_nics_found is not None and facts.nccl_nics_found != asked:
            findings.wrong.append(
                f"NCCL's plugin found {facts.nccl_nics_found} NICs on rank {facts.rank}, its pod asked for {asked}"
            )
            return


def _judge_transports(config: TrainConfig, transports: Sequence[Transport], findings: Findings) -> None:
    expected = {link.link_class: link for link in config.expectations.links}
    by_class: dict[LinkClass, list[Transport]] = defaultdict(list)
    for each in transports:
        by_class[each.link_class].append(each)
    for name, seen in by_class.items():
        if name not in expected or not expected[name].pairs:
            findings.wrong.append(f"{name}: {_shown(seen)}, and the plan knows no such pairs")
    for link in expected.values():
        _judge_link(link, by_class.get(link.link_class, []), findings)


def _judge_link(link: LinkExpectation, seen: Sequence[Transport], findings: Findings) -> None:
    """NCCL connects ring and tree neighbours only, so a class needs one proven pair, not all of them; but
    no pair may use anything else."""
    if not link.pairs:
        return
    if not seen:
        findings.missing.append(
            f"{link.link_class}: none of the {link.pairs} pairs left evidence of its transport; "
            f"{' or '.join(link.expected)} is expected"
        )
        return
    unexpected = [each for each in seen if each.transport not in link.expected]
    forbidden = [each for each in unexpected if each.transport in link.forbidden]
    wanted = " or ".join(link.expected)
    if forbidden:
        findings.wrong.append(f"{link.link_class}: {_shown(forbidden)}, which the plan forbids; {wanted} is expected")
    elif unexpected:
        findings.wrong.append(f"{link.link_class}: {_shown(unexpected)} where {wanted} is expected")


def _shown(seen: Sequence[Transport]) -> str:
    first = seen[0]
    pairs = len({(each.from_rank, each.to_rank) for each in seen})
    names = ", ".join(sorted({each.transport for each in seen}))
    return (
        f"{pairs} {'pair' if pairs == 1 else 'pairs'} used {names} "
        f"(rank {first.from_rank} to {first.to_rank}: `{first.detail}`)"
    )


def _judge_shaping(config: TrainConfig, link_shaping: LinkShaping, findings: Findings) -> None:
    rate = config.expectations.link_rate_bits_per_s
    if rate is not None and link_shaping != "shaped":
        findings.missing.append(
            f"the topology names a link of {rate / 1e6:g} Mbit/s, and this machine could not set it "
            f"(link `{link_shaping}`)"
        )
