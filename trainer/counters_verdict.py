"""The part of the verdict that byte counters and the link's probe decide."""

from collections.abc import Sequence
from itertools import pairwise

from trainer.bandwidth import unsent
from trainer.config import ExpectedBytes, TrainConfig
from trainer.findings import Findings
from trainer.record import CounterSample, LinkProbe, LinkShaping, Probe, RankFacts, Transport
from trainer.sent import is_window, sent_by_device, sent_per_step, stretches

LINK_RATE_TOLERANCE = 0.05
"""A token bucket's long-run rate is exact; headers that it doesn't count are under 5% of a full frame."""

LINK_BURST_S, LEAST_BURST_BYTES = 0.01, 16 * 1024
"""What a dialled link may let pass above its rate after a pause: 10 ms of it, as the lab sets its buckets."""


def judge_counters(
    config: TrainConfig, link_shaping: LinkShaping, ranks: Sequence[RankFacts], timed_after: int
) -> Findings:
    """Over the timed window of each pod, as its local rank 0 sampled it; `timed_after`: last warm-up step."""
    findings = Findings()
    expected, rate = config.expectations.bytes_sent, config.expectations.link_rate_bits_per_s
    for facts in ranks:
        if facts.local_rank:
            continue
        fault = _window_fault(facts.counters, timed_after, config.steps)
        if fault:
            findings.missing.append(f"pod {facts.pod} {fault}")
            continue
        backwards = _ran_backwards(facts.counters)
        if backwards:
            findings.wrong.append(f"pod {facts.pod}: {backwards}")
            continue
        if expected is not None:
            _judge_bytes(expected, facts, findings)
        if link_shaping == "shaped" and rate is not None:
            _judge_rate(rate, facts, findings)
    return findings


def judge_probe(config: TrainConfig, link_shaping: LinkShaping, probe: LinkProbe | None) -> Findings:
    """Training may send too little to show that a link was never dialled; the probe sent flat out."""
    rate = config.expectations.link_rate_bits_per_s
    if probe is None or rate is None or link_shaping != "shaped":
        return Findings()
    if probe.sent_bytes <= _carried(rate, probe.seconds):
        return Findings()
    return Findings(
        wrong=[
            f"the link was not shaped: a pod sent {probe.sent_bytes * 8 / probe.seconds / 1e6:.1f} Mbit/s flat out "
            f"over a link dialled to {rate / 1e6:.1f} Mbit/s"
        ]
    )


def judge_sweeps(config: TrainConfig, probe: Probe | None) -> Findings:
    """What the probe sent between pods went over the devices that the plan counts on."""
    if probe is None:
        absent = "the run was to be probed and left no probe"
        return Findings(missing=[absent] if config.probe_s else [])
    expected = config.expectations.bytes_sent
    if config.pods == 1 or expected is None:
        return Findings()
    return Findings(wrong=list(unsent(probe, expected.counter)))


def judge_efa_use(config: TrainConfig, ranks: Sequence[RankFacts], transports: Sequence[Transport]) -> Findings:
    """Where EFA crosses pods, the devices that a pod asked for carry bytes.

    The devices' own counters are certain. NCCL's numbers are not: one of them may join several devices.
    """
    findings = Findings()
    asked = config.expectations.efa_devices_per_pod
    if asked < 2 or config.pods < 2:
        return findings
    for facts in ranks:
        if facts.local_rank:
            continue
        sent = _sent_by_efa_device(facts)
        idle = sorted(name for name, count in sent.items() if not count)
        if len(sent) == asked and idle:
            findings.wrong.append(
                f"pod {facts.pod} sent nothing over {', '.join(idle)}; all {asked} EFA devices that it asked for "
                "are meant to carry"
            )
        elif len(sent) < asked:
            own = {each.rank for each in ranks if each.pod == facts.pod}
            findings.missing += _unused_by_the_log(facts.pod, own, transports, asked)
    return findings


def efa_number(transport: Transport) -> int | None:
    """The device of `NET/Libfabric/1(2)/GDRDMA`: 1."""
    parts = transport.detail.split("/")
    if not transport.transport.startswith("NET/Libfabric") or len(parts) < 3:
        return None
    number = parts[2].partition("(")[0]
    return int(number) if number.isdecimal() else None


def _window_fault(window: Sequence[CounterSample], timed_after: int, last_step: int) -> str | None:
    if not is_window(window):
        return (
            f"sampled its byte counters {len(window)} times; "
            "a sample at both ends of each measured stretch is due"
        )  # fmt: skip
    if (window[0].after_step, window[-1].after_step) != (timed_after, last_step):
        return (
            f"sampled its byte counters from step {window[0].after_step} to step {window[-1].after_step}, "
            f"the timed window is {timed_after} to {last_step}"
        )
    return None


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


def _judge_bytes(expected: ExpectedBytes, facts: RankFacts, findings: Findings) -> None:
    measured, predicted = sent_per_step(facts, expected.counter), expected.per_pod_and_step
    if measured is None:
        if predicted:
            findings.missing.append(f"pod {facts.pod} lacks {expected.counter} counters in some of its samples")
        return
    allowed = expected.relative_tolerance * predicted + expected.absolute_tolerance_per_step
    if abs(measured - predicted) > allowed:
        findings.wrong.append(
            f"pod {facts.pod} sent {measured / 1e6:.3f} MB a step by its {expected.counter} counters, "
            f"predicted {predicted / 1e6:.3f} MB ({expected.formula}), "
            f"allowed difference {allowed / 1e6:.3f} MB"
        )


def _judge_rate(rate_bits_per_s: float, facts: RankFacts, findings: Findings) -> None:
    """A dialled link can't be outrun: if it was, it wasn't dialled."""
    for first, last in stretches(facts.counters):
        seconds = last.unix_s - first.unix_s
        sent = sum((sent_by_device(facts, "interface", (first, last)) or {}).values())
        if seconds <= 0:
            findings.missing.append(
                f"the clock of pod {facts.pod} ran backwards ({seconds:g} s from step {first.after_step} to "
                f"{last.after_step}), so its rate is not known"
            )
            return
        if sent > _carried(rate_bits_per_s, seconds):
            findings.wrong.append(
                f"pod {facts.pod} sent {sent * 8 / seconds / 1e6:.1f} Mbit/s over a link dialled to "
                f"{rate_bits_per_s / 1e6:.1f} Mbit/s: the rate was not in force"
            )
            return


def _carried(rate_bits_per_s: float, seconds: float) -> float:
    """The most bytes that a dialled link lets through."""
    burst = max(rate_bits_per_s / 8 * LINK_BURST_S, LEAST_BURST_BYTES)
    return rate_bits_per_s / 8 * seconds * (1 + LINK_RATE_TOLERANCE) + burst


def _sent_by_efa_device(facts: RankFacts) -> dict[str, int]:
    total: dict[str, int] = {}
    if is_window(facts.counters):
        for stretch in stretches(facts.counters):
            for name, count in (sent_by_device(facts, "efa", stretch) or {}).items():
                total[name] = total.get(name, 0) + count
    return total


def _unused_by_the_log(pod: int, ranks: set[int], transports: Sequence[Transport], asked: int) -> list[str]:
    numbers = {n for each in transports if each.from_rank in ranks and (n := efa_number(each)) is not None}
    if not numbers or len(numbers) >= asked:
        return []
    return [
        f"NCCL's lines name EFA device {', '.join(map(str, sorted(numbers)))} only for pod {pod}, which asked for "
        f"{asked}; without a counter of each device it is not certain that all carried"
    ]
