"""Nobody has to believe a record: what can be derived from its raw lines and its plan is derived again."""

import math
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainer.config import Expectations
from trainer.flops import parameters
from trainer.record import StepLine, Summary, Transport, Verdict
from trainer.summary import summarize
from trainer.verdict import Start, judge, transports
from workloads.comparison.records import Run
from workloads.planning.expectations import possible_expectations

RELATIVE_TOLERANCE = 1e-9
"""Floats may differ by the rounding of another Python, which sums in another order; nothing else may."""


def verify(run: Run) -> list[str]:
    """What a record says otherwise than its raw lines and its plan, and the logs that it lacks; [] is good."""
    return [*_changes(run, _derive(run)), *(f"{name}: missing from a complete record" for name in run.missing)]


def recomputed(run: Run) -> Run:
    """The run with transports, summary and verdict as its raw lines give them; INVALID where the record
    says otherwise."""
    derived = _derive(run)
    verdict, changes = derived.verdict, _changes(run, derived)
    if changes:
        reason = f"the record was changed after it was written: {'; '.join(changes)}"
        verdict = Verdict(outcome="INVALID", reasons=(reason, *verdict.reasons))
    update = {"transports": derived.transports, "summary": derived.summary, "verdict": verdict}
    return replace(run, record=run.record.model_copy(update=update))


def unchecked(run: Run) -> list[str]:
    """What can't be derived again, in words."""
    if possible_expectations(run.record.config):
        return []
    return [f"what topology {run.record.config.topology} is held to, because the catalogue doesn't know its machine"]


@dataclass(frozen=True)
class _Derived:
    transports: tuple[Transport, ...]
    summary: Summary
    verdict: Verdict


def _derive(run: Run) -> _Derived:
    record = run.record
    seen = transports(record.config, record.ranks, run.nccl_logs)
    return _Derived(
        transports=seen,
        summary=summarize(record.config, run.steps, record.ranks),
        verdict=judge(
            record.config,
            record.status,
            record.link_shaping,
            record.ranks,
            seen,
            run.steps,
            hang=record.hang,
            start=Start(resumed_after_step=record.resumed_after_step, link_probe=record.link_probe, probe=record.probe),
        ),
    )


def _changes(run: Run, derived: _Derived) -> list[str]:
    record = run.record
    return [
        *_differences("", {"run_id": record.run_id}, {"run_id": posixpath.basename(run.location)}, "its folder is"),
        *_differences("transports.", _plain(record.transports), _plain(derived.transports)),
        *_differences("summary.", record.summary.model_dump(), derived.summary.model_dump()),
        *_differences("verdict.", record.verdict.model_dump(), derived.verdict.model_dump()),
        *_clock_differences(run),
        *_plan_differences(run),
    ]


def _clock_differences(run: Run) -> list[str]:
    """A run that failed leaves the clocks of the ranks that could still write."""
    if run.record.status == "failed":
        return []
    found = []
    for facts in run.record.ranks:
        said = {"warmup_s": facts.clock.warmup_s, "timed_s": facts.clock.timed_s}
        found += _differences(f"ranks.{facts.rank}.clock.", said, _step_seconds(run.steps.get(facts.rank, ())))
    return found


def _step_seconds(lines: Iterable[StepLine]) -> dict[str, float]:
    known = tuple(lines)
    return {
        "warmup_s": sum(line.seconds for line in known if line.phase == "warmup"),
        "timed_s": sum(line.seconds for line in known if line.phase == "timed"),
    }


def _plan_differences(run: Run) -> list[str]:
    config, said = run.record.config, {"model_parameters": run.record.model_parameters}
    own = config.command is None
    derived = {"model_parameters": parameters(config.model.architecture) if own else None}
    found = _differences("", said, derived, "its architecture gives")
    possible = [
        _expectation_differences(config.expectations, each if own else each.model_copy(update={"bytes_sent": None}))
        for each in possible_expectations(config)
    ]
    nearest = sorted(possible, key=len)[:1]
    return [*found, *(difference for differences in nearest for difference in differences)]


def _expectation_differences(said: Expectations, derived: Expectations) -> list[str]:
    where, source = "config.expectations.", "topology and recipe give"
    return _differences(where, said.model_dump(), derived.model_dump(), source)


def _plain(models: Iterable[Any]) -> dict[str, Any]:
    return {str(index): model.model_dump() for index, model in enumerate(models)}


def _differences(
    where: str, recorded: Mapping[str, Any], derived: Mapping[str, Any], source: str = "its raw lines give"
) -> list[str]:
    found = []
    for key in recorded.keys() | derived.keys():
        said, is_now = recorded.get(key), derived.get(key)
        if not _same(said, is_now):
            found.append(f"{where}{key}: the record says {_word(said)}, {source} {_word(is_now)}")
    return sorted(found)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=RELATIVE_TOLERANCE)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(one == other)


def _word(value: Any) -> str:
    return "nothing" if value is None else str(value)
