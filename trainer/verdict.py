"""Which transports a run used, and whether the run is what its plan promised.

Pure: the run itself, and anyone who holds its record, compute the same verdict from the same lines.
Wrong evidence makes a run INVALID, missing evidence UNPROVEN; a VALID verdict has no reasons.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Literal

from trainer.config import ExpectedBytes, LinkExpectation, TrainConfig
from trainer.contract import LinkClass
from trainer.record import (
    CounterSample,
    LinkShaping,
    RankFacts,
    Status,
    StepLine,
    Transport,
    Verdict,
)
from trainer.transports import link_class, transports

__all__ = [
    "LINK_BURST_BYTES",
    "LINK_RATE_TOLERANCE",
    "LOSS_RELATIVE_TOLERANCE",
    "judge",
    "judge_links",
    "transports",
]

LOSS_RELATIVE_TOLERANCE = 1e-6
"""Every rank writes the same all-reduced mean; only its way through float32 may differ."""

LINK_RATE_TOLERANCE = 0.05
"""A token bucket's long-run rate is exact; headers that it doesn't count are under 5% of a full frame."""

LINK_BURST_BYTES = 4 * 1024 * 1024
"""The largest burst that a dialled link is given (4mb at 25 Gbit/s), which may pass above the rate."""


def judge_links(config: TrainConfig, ranks: Sequence[RankFacts], transports: Sequence[Transport]) -> Verdict:
    """The part of the verdict that is known once all links are up: places, devices, transports."""
    findings = _Findings()
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
) -> Verdict:
    """The verdict on a finished run."""
    findings = _Findings()
    _judge_status(config, status, steps_by_rank, findings)
    _judge_places(config, ranks, findings)
    _judge_steps(config, steps_by_rank, findings)
    _judge_losses(config, steps_by_rank, findings)
    link_findings = _Findings()
    _judge_devices(config, ranks, transports, link_findings)
    _judge_transports(config, transports, link_findings)
    _judge_counters(config, link_shaping, ranks, link_findings)
    findings.add(link_findings if link_shaping != "unshaped" else link_findings.demoted())
    _judge_shaping(config, link_shaping, findings)
    return findings.verdict()


@dataclass
class _Findings:
    wrong: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def add(self, other: "_Findings") -> None:
        self.wrong += other.wrong
        self.missing += other.missing

    def demoted(self) -> "_Findings":
        """On a machine that couldn't make the link, what its links show proves nothing either way."""
        return _Findings(missing=self.wrong + self.missing)

    def verdict(self) -> Verdict:
        if self.wrong:
            return Verdict(outcome="INVALID", reasons=tuple(self.wrong + self.missing))
        if self.missing:
            return Verdict(outcome="UNPROVEN", reasons=tuple(self.missing))
        return Verdict(outcome="VALID", reasons=())


def _judge_status(
    config: TrainConfig,
    status: Status,
    steps_by_rank: Mapping[int, Sequence[StepLine]],
    findings: _Findings,
) -> None:
    if status != "complete":
        last = max((line.step for lines in steps_by_rank.values() for line in lines), default=0)
        findings.wrong.append(f"the run ended as `{status}` after step {last} of {config.steps}")


def _judge_places(config: TrainConfig, ranks: Sequence[RankFacts], findings: _Findings) -> None:
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


def _judge_pairs(config: TrainConfig, ranks: Sequence[RankFacts], findings: _Findings) -> None:
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
    config: TrainConfig, ranks: Sequence[RankFacts], transports: Sequence[Transport], findings: _Findings
) -> None:
    asked = config.expectations.efa_devices_per_pod
    for facts in ranks:
        if facts.local_rank == 0 and len(facts.efa_devices) != asked:
            findings.wrong.append(
                f"pod {facts.pod} sees {len(facts.efa_devices)} EFA devices"
                f" ({', '.join(facts.efa_devices) or 'none'}), it asked for {asked}"
            )
    used = {number for each in transports if (number := _efa_number(each)) is not None}
    beyond = sorted(number for number in used if number >= asked)
    if beyond:
        findings.wrong.append(f"NCCL used EFA device number {beyond[-1]}, counted from 0; each pod asked for {asked}")


def _efa_number(transport: Transport) -> int | None:
    """The device of `NET/Libfabric/1(2)/GDRDMA`: 1."""
    parts = transport.detail.split("/")
    if not transport.transport.startswith("NET/Libfabric") or len(parts) < 3:
        return None
    number = parts[2].partition("(")[0]
    return int(number) if number.isdecimal() else None


def _judge_transports(config: TrainConfig, transports: Sequence[Transport], findings: _Findings) -> None:
    expected = {link.link_class: link for link in config.expectations.links}
    by_class: dict[LinkClass, list[Transport]] = defaultdict(list)
    for each in transports:
        by_class[each.link_class].append(each)
    for name, seen in by_class.items():
        if name not in expected:
            findings.wrong.append(f"{name}: {_shown(seen)}, and the plan knows no such pairs")
    for link in expected.values():
        _judge_link(link, by_class.get(link.link_class, []), findings)


def _judge_link(link: LinkExpectation, seen: Sequence[Transport], findings: _Findings) -> None:
    """NCCL connects ring and tree neighbours only, so a class needs one proven pair, not all of them."""
    if not link.pairs:
        return
    if not seen:
        findings.missing.append(
            f"{link.link_class}: none of the {link.pairs} pairs left evidence of its transport; "
            f"{' or '.join(link.expected)} is expected"
        )
        return
    forbidden = [each for each in seen if each.transport in link.forbidden]
    if forbidden:
        findings.wrong.append(
            f"{link.link_class}: {_shown(forbidden)}, which the plan forbids; {' or '.join(link.expected)} is expected"
        )
    elif not any(each.transport in link.expected for each in seen):
        findings.wrong.append(f"{link.link_class}: {_shown(seen)} where {' or '.join(link.expected)} is expected")


def _shown(seen: Sequence[Transport]) -> str:
    first = seen[0]
    pairs = len({(each.from_rank, each.to_rank) for each in seen})
    names = ", ".join(sorted({each.transport for each in seen}))
    return (
        f"{pairs} {'pair' if pairs == 1 else 'pairs'} used {names} "
        f"(rank {first.from_rank} to {first.to_rank}: `{first.detail}`)"
    )


def _judge_steps(config: TrainConfig, steps_by_rank: Mapping[int, Sequence[StepLine]], findings: _Findings) -> None:
    """A run that resumed begins after its checkpoint, on every rank after the same one."""
    firsts = {lines[0].step for lines in steps_by_rank.values() if lines}
    first = min(firsts, default=1) if config.resume else 1
    wanted = list(range(first, config.steps + 1))
    for rank in range(config.ranks):
        written = [line.step for line in steps_by_rank.get(rank, ())]
        if written != wanted:
            findings.wrong.append(
                f"rank {rank} wrote {len(written)} step lines ({_span(written)}), "
                f"steps {first} to {config.steps} are due"
            )
    if all(line.phase != "timed" for lines in steps_by_rank.values() for line in lines):
        findings.missing.append(f"no step is timed: {config.warmup_steps} of {config.steps} steps are warm-up")


def _span(steps: Sequence[int]) -> str:
    return f"{steps[0]} to {steps[-1]}" if steps else "none"


def _judge_losses(config: TrainConfig, steps_by_rank: Mapping[int, Sequence[StepLine]], findings: _Findings) -> None:
    by_step: dict[int, dict[int, StepLine]] = defaultdict(dict)
    for rank, lines in steps_by_rank.items():
        for line in lines:
            by_step[line.step][rank] = line
    for step, lines_of_step in sorted(by_step.items()):
        fault = _loss_fault(lines_of_step, config.sequences_per_step)
        if fault:
            # Later steps usually repeat the first fault.
            findings.wrong.append(f"step {step}: {fault}")
            return


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


def _judge_counters(
    config: TrainConfig, link_shaping: LinkShaping, ranks: Sequence[RankFacts], findings: _Findings
) -> None:
    """Over the timed window of each pod, as its local rank 0 sampled it."""
    for facts in ranks:
        if facts.local_rank:
            continue
        window = facts.counters
        if not window or len(window) % 2 or window[-1].after_step <= window[0].after_step:
            findings.missing.append(
                f"pod {facts.pod} sampled its byte counters {len(window)} times; "
                "a sample at both ends of each measured stretch is due"
            )
            continue
        backwards = _ran_backwards(window)
        if backwards:
            findings.wrong.append(f"pod {facts.pod}: {backwards}")
            continue
        if config.expectations.bytes_sent is not None:
            _judge_bytes(config.expectations.bytes_sent, facts.pod, window, findings)
        if link_shaping == "shaped" and config.expectations.link_rate_bits_per_s is not None:
            _judge_rate(config.expectations.link_rate_bits_per_s, facts.pod, window, findings)


def _ran_backwards(window: Sequence[CounterSample]) -> str | None:
    for first, last in pairwise(window):
        before = {each.name: each for each in first.interfaces}
        for after in last.interfaces:
            start = before.get(after.name)
            if start is not None and (after.sent < start.sent or after.received < start.received):
                return (
                    f"the counters of {after.name} ran backwards between steps {first.after_step} and "
                    f"{last.after_step} (sent {start.sent} to {after.sent}, "
                    f"received {start.received} to {after.received})"
                )
    return None


def _stretches(window: Sequence[CounterSample]) -> Iterator[tuple[CounterSample, CounterSample]]:
    """Samples come in pairs, so that what a checkpoint or an evaluation sent lies between two stretches."""
    return zip(window[::2], window[1::2], strict=True)


def _sent_bytes(kind: Literal["interface", "efa"], first: CounterSample, last: CounterSample) -> int | None:
    """Bytes that left a pod between two samples by its counters of one kind; None where it has no such
    counter. `lo` carries what never leaves the pod."""
    before = {each.name: each.sent for each in first.interfaces if each.kind == kind}
    after = {each.name: each.sent for each in last.interfaces if each.kind == kind}
    names = (before.keys() & after.keys()) - {"lo"}
    return sum(after[name] - before[name] for name in names) if names else None


def _judge_bytes(expected: ExpectedBytes, pod: int, window: Sequence[CounterSample], findings: _Findings) -> None:
    by_stretch = [_sent_bytes(expected.counter, first, last) for first, last in _stretches(window)]
    known = [sent for sent in by_stretch if sent is not None]
    if len(known) < len(by_stretch):
        if expected.per_pod_and_step:
            findings.missing.append(f"pod {pod} has no {expected.counter} counter in some of its samples")
        return
    measured = sum(known) / (window[-1].after_step - window[0].after_step)
    predicted = expected.per_pod_and_step
    allowed = expected.relative_tolerance * predicted + expected.absolute_tolerance_per_step
    if abs(measured - predicted) > allowed:
        findings.wrong.append(
            f"pod {pod} sent {measured / 1e6:.3f} MB a step by its {expected.counter} counters, "
            f"predicted {predicted / 1e6:.3f} MB ({expected.formula}), "
            f"allowed difference {allowed / 1e6:.3f} MB"
        )


def _judge_rate(rate_bits_per_s: float, pod: int, window: Sequence[CounterSample], findings: _Findings) -> None:
    """A dialled link can't be outrun: if it was, it wasn't dialled."""
    for first, last in _stretches(window):
        sent, seconds = _sent_bytes("interface", first, last) or 0, last.unix_s - first.unix_s
        carried = rate_bits_per_s / 8 * seconds * (1 + LINK_RATE_TOLERANCE) + LINK_BURST_BYTES
        if seconds > 0 and sent > carried:
            findings.wrong.append(
                f"pod {pod} sent {sent * 8 / seconds / 1e6:.1f} Mbit/s over a link dialled to "
                f"{rate_bits_per_s / 1e6:.1f} Mbit/s: the rate was not in force"
            )
            return


def _judge_shaping(config: TrainConfig, link_shaping: LinkShaping, findings: _Findings) -> None:
    rate = config.expectations.link_rate_bits_per_s
    if rate is not None and link_shaping != "shaped":
        findings.missing.append(
            f"the topology names a link of {rate / 1e6:g} Mbit/s, and this machine could not set it "
            f"(link `{link_shaping}`)"
        )
