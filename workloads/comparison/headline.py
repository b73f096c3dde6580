"""The one sentence that the page exists for, computed from the figures and from nothing else."""

from collections.abc import Sequence

from workloads.comparison.figures import ArmFigures
from workloads.comparison.wording import bounds, rate, seconds, size, times


def headline(arms: Sequence[ArmFigures]) -> str:
    """The slowest arm that counts against the baseline; what there is to say where there are not two."""
    counted = [arm for arm in arms if arm.step_s is not None]
    baseline = next((arm for arm in counted if arm.is_baseline), None)
    if baseline is None:
        return "No run counts, so no step time and no ratio is shown: see the reasons below."
    if len(counted) == 1:
        return f"{_subject(baseline, arms)} each optimizer step takes {seconds(baseline.step_s)}."
    return _against(_slowest(counted), baseline, arms)


def other_findings(arms: Sequence[ArmFigures]) -> list[str]:
    """A sentence for each further arm that counts, fastest first."""
    counted = [arm for arm in arms if arm.step_s is not None]
    baseline = next((arm for arm in counted if arm.is_baseline), None)
    if baseline is None or len(counted) < 3:
        return []
    slowest = _slowest(counted)
    return [
        f"{_subject(arm, arms)} it takes {times(arm.ratio)} as long "
        f"[95% CI {bounds(arm.ratio)}{_doubt(arm)}]{_indistinct(arm)}."
        for arm in counted
        if arm not in (baseline, slowest)
    ]


def standing(arms: Sequence[ArmFigures]) -> str:
    """How many arms are VALID, and which are not."""
    others = [f"{arm.name} is {arm.outcome}" for arm in arms if arm.outcome != "VALID"]
    if not others:
        every = {1: "The arm is", 2: "Both arms are"}.get(len(arms), f"All {len(arms)} arms are")
        return f"{every} VALID."
    return f"{len(arms) - len(others)} of {len(arms)} arms are VALID; {', '.join(others)}."


def _against(arm: ArmFigures, baseline: ArmFigures, arms: Sequence[ArmFigures]) -> str:
    assert arm.ratio is not None
    assert arm.step_s is not None
    assert baseline.step_s is not None
    sentence = (
        f"{_subject(arm, arms)} each optimizer step takes {times(arm.ratio)} as long as "
        f"{_place(baseline, arms)} [95% CI {bounds(arm.ratio)}{_doubt(arm)}]"
    )
    if not arm.ratio.tells_apart:
        return f"{sentence}: these runs can't tell the two apart."
    extra_s = arm.step_s - baseline.step_s
    return f"{sentence}: {seconds(extra_s)} more{_explanation(arm, baseline, extra_s)}."


def _explanation(arm: ArmFigures, baseline: ArmFigures, extra_s: float) -> str:
    """Measured bytes over the dialled rate; without a dialled rate, the predicted communication."""
    if arm.wire_s is not None and arm.link_rate_bits_per_s is not None and arm.sent_bytes:
        sent, wire = size(arm.sent_bytes), seconds(arm.wire_s)
        if arm.wire_s < 0.9 * extra_s:
            return f", of which the {sent} that each pod sends explain {wire} at that rate"
        hidden = ", partly hidden behind compute" if arm.wire_s > 1.1 * extra_s else ""
        return f", and the {sent} that each pod sends need {wire} at that rate{hidden}"
    if arm.predicted is None or baseline.predicted is None:
        return ""
    exposed = [_communication(each) for each in (arm, baseline)]
    return f", of which the prediction puts {seconds(exposed[0] - exposed[1])} in communication"


def _communication(arm: ArmFigures) -> float:
    assert arm.predicted is not None
    return sum(value for name, value in arm.predicted.parts_s.items() if "communication" in name)


def _indistinct(arm: ArmFigures) -> str:
    told = arm.ratio is None or arm.ratio.tells_apart
    return "" if told else ", so these runs can't tell it from the baseline"


def _slowest(counted: Sequence[ArmFigures]) -> ArmFigures:
    others = [arm for arm in counted if not arm.is_baseline]
    return max(others, key=lambda arm: arm.step_s or 0.0)


def _doubt(arm: ArmFigures) -> str:
    return "" if arm.outcome == "VALID" else f", {arm.outcome}"


def _subject(arm: ArmFigures, arms: Sequence[ArmFigures]) -> str:
    place = _place(arm, arms)
    return place[0].upper() + place[1:]


def _place(arm: ArmFigures, arms: Sequence[ArmFigures]) -> str:
    """Where the steps ran, in words if they are this arm's alone, else its name."""
    words = _words(arm)
    shared = [other.name for other in arms if _words(other) == words]
    return words if shared == [arm.name] else f"in arm {arm.name}"


def _words(arm: ArmFigures) -> str:
    if arm.pods == 1:
        return "inside one pod"
    if arm.link_rate_bits_per_s is not None:
        return f"at {rate(arm.link_rate_bits_per_s)}"
    across = {name for link in arm.links if link.link_class != "same-pod" for name in link.seen}
    return f"over {' and '.join(sorted(across))} between {arm.pods} pods" if across else f"in arm {arm.name}"
