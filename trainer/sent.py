"""Bytes that left a pod in the timed window: one rule, for the figure that is shown and for the verdict.

Samples come in pairs, one at each end of a measured stretch, so that what a checkpoint or an evaluation sent
lies between two stretches. `lo` carries what never leaves the pod.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from trainer.record import CounterSample, RankFacts

Kind = Literal["interface", "efa"]
Stretch = tuple[CounterSample, CounterSample]


def is_window(samples: Sequence[CounterSample]) -> bool:
    """Whether the samples bound stretches that hold at least one step."""
    return bool(samples) and len(samples) % 2 == 0 and measured_steps(samples) > 0


def stretches(samples: Sequence[CounterSample]) -> Iterator[Stretch]:
    """The measured stretches of a window."""
    return zip(samples[::2], samples[1::2], strict=True)


def measured_steps(samples: Sequence[CounterSample]) -> int:
    """Steps inside the stretches."""
    return sum(last.after_step - first.after_step for first, last in stretches(samples))


def sent_by_device(facts: RankFacts, kind: Kind, stretch: Stretch) -> dict[str, int] | None:
    """Bytes that each counter of one kind counted between two samples.

    None where evidence is missing: no such counter at both ends, or not one for each EFA device that the pod
    sees.
    """
    sent = sent_between(kind, stretch)
    if not sent or (kind == "efa" and not sent.keys() >= set(facts.efa_devices)):
        return None
    return sent


def sent_between(kind: Kind, stretch: Stretch) -> dict[str, int]:
    """Bytes that each counter of one kind, seen at both ends, counted between two samples."""
    before, after = ({c.name: c.sent for c in end.interfaces if c.kind == kind} for end in stretch)
    names = (before.keys() & after.keys()) - {"lo"}
    return {name: after[name] - before[name] for name in sorted(names)}


def sent_per_step(facts: RankFacts, kind: Kind) -> float | None:
    """Bytes that left this rank's pod in one timed step; None where a stretch lacks its counters."""
    if not is_window(facts.counters):
        return None
    total = 0
    for stretch in stretches(facts.counters):
        sent = sent_by_device(facts, kind, stretch)
        if sent is None:
            return None
        total += sum(sent.values())
    return total / measured_steps(facts.counters)
