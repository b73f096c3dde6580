"""Which runs may stand in one table: what must be equal is, or the difference is named and refused."""

import hashlib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from trainer.config import TrainConfig
from trainer.record import Outcome
from trainer.summary import step_seconds, timed_steps
from workloads.comparison.records import Run
from workloads.comparison.statistics import Interval, Series, Spread, ratio, spread, typical_step

Vary = Literal["topology", "recipe", "best"]

LOSS_TOLERANCE = 0.01
"""Largest mean relative difference of two runs' losses over their common timed steps.

bf16 keeps 8 significant bits, so one rounding moves a value by up to 0.4%; another order of summation (more
ranks, another accumulation) changes many of them, mostly against each other: runs that do the same work were
seen to agree to 0.1% or better. Another batch, learning rate or lost gradient moves a loss by several
percent.
"""

LOSS_KEY = "losses"


@dataclass(frozen=True)
class Arm:
    """All runs of one arm."""

    name: str
    runs: tuple[Run, ...]

    @property
    def config(self) -> TrainConfig:
        """Of the first run; what the page shows of it is equal in all."""
        return self.runs[0].record.config

    @property
    def outcome(self) -> Outcome:
        """The best proven: VALID if all runs that count are; INVALID if none counts."""
        outcomes = {run.record.verdict.outcome for run in self.counted}
        if not outcomes:
            return "INVALID"
        return "UNPROVEN" if "UNPROVEN" in outcomes else "VALID"

    @property
    def counted(self) -> tuple[Run, ...]:
        """Runs whose figures are compared: those that are not INVALID and timed a step."""
        return tuple(
            run for run in self.runs if run.record.verdict.outcome != "INVALID" and run.record.summary.timed_steps
        )


@dataclass(frozen=True)
class Difference:
    """One key that is not equal in all runs, with the arms that hold each value."""

    key: str
    arms_by_value: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        sides = "; ".join(f"{value} in {', '.join(arms)}" for value, arms in self.arms_by_value.items())
        return f"{self.key}: {sides}"


@dataclass(frozen=True)
class Comparison:
    """Arms, fastest first; those without a run that counts stand last."""

    vary: Vary
    key: str
    """Hash of all that is equal."""
    arms: tuple[Arm, ...]
    baseline: Arm | None
    """The fastest arm that is VALID, else the fastest that is UNPROVEN, else none."""
    series: Mapping[str, Series]
    """Run id to the seconds of its timed steps; runs that count."""
    typical_step_s: Mapping[str, float]
    """Arm to seconds."""
    ratios: Mapping[str, Interval]
    """Arm to how many times as long its step takes as the baseline's; the baseline itself has none."""
    scatter: Mapping[str, Spread]
    """Arm to the scatter that its ratio's interval rests on."""
    allowed: tuple[Difference, ...]
    """Differences that were allowed by name."""
    loss_difference: float | None
    """The largest mean relative difference of any run's losses from the baseline's first run; None where no
    other run has a loss to compare."""
    uncompared_losses: tuple[str, ...]
    """Ids of runs that count and share no timed step with a loss with the baseline."""


def compare(runs: Sequence[Run], vary: Vary | None = None, allow: Collection[str] = ()) -> Comparison:
    """Group runs into arms and compare them, or refuse with the differing keys named.

    `vary` is what the experiment changes; None: the recipe if all runs share one topology, else the
    topology. `allow` holds keys (or their first parts, e.g. `versions`) that may differ.
    """
    if not runs:
        raise ValueError("no run to compare; give a folder of records")
    arms = arms_of(runs)
    vary = vary or varied(arms)
    differences = allowed_differences(runs, vary, allow)
    equal = {
        key: value
        for key, value in comparability_key(runs[0], vary).items()
        if key not in {difference.key for difference in differences}
    }
    series = {run.record.run_id: step_series(run) for arm in arms for run in arm.counted}
    steps = {arm.name: [series[run.record.run_id] for run in arm.counted] for arm in arms if arm.counted}
    typical = {name: typical_step(series) for name, series in steps.items()}
    arms = tuple(sorted(arms, key=lambda arm: (typical.get(arm.name, math.inf), arm.name)))
    baseline = _baseline(arms)
    reference = steps[baseline.name] if baseline else []
    losses = _loss_differences(arms, baseline)
    _check_losses(losses, baseline, allow)
    known_losses = [each for each in losses.values() if each is not None]
    others = {name: own for name, own in steps.items() if baseline and name != baseline.name}
    scatter = {name: spread(own, reference, list(steps.values())) for name, own in others.items()}
    return Comparison(
        vary=vary,
        key=_hash(equal),
        arms=arms,
        baseline=baseline,
        series=series,
        typical_step_s=typical,
        ratios={name: ratio(own, reference, scatter[name]) for name, own in others.items()},
        scatter=scatter,
        allowed=differences,
        loss_difference=max(known_losses, default=None),
        uncompared_losses=tuple(run_id for run_id, each in losses.items() if each is None),
    )


def arms_of(runs: Sequence[Run]) -> tuple[Arm, ...]:
    """Runs by arm; ValueError where the repeats of one arm are none."""
    names = dict.fromkeys(run.record.config.arm for run in runs)
    arms = tuple(Arm(name, tuple(run for run in runs if run.record.config.arm == name)) for name in sorted(names))
    for arm in arms:
        _refuse_mixed(arm)
    return arms


def varied(arms: Sequence[Arm]) -> Vary:
    """What an experiment that doesn't say so must have varied."""
    one_topology = len({arm.config.topology for arm in arms}) == 1
    return "recipe" if one_topology and len(arms) > 1 else "topology"


def allowed_differences(runs: Sequence[Run], vary: Vary, allow: Collection[str]) -> tuple[Difference, ...]:
    """What differs though it should be equal, all of it allowed by name; ValueError names what isn't."""
    differences = _differences(runs, {run.record.run_id: comparability_key(run, vary) for run in runs})
    _refuse(differences, vary, allow)
    return tuple(differences)


def comparability_key(run: Run, vary: Vary) -> dict[str, str]:
    """Everything of a run that must be equal for what the experiment varies, as flat JSON values."""
    record, config = run.record, run.record.config
    if config.command is not None:
        return dict(_flat("", _foreign_key(run)))
    must: dict[str, Any] = {
        "command": None,
        "model": config.model.model_dump(),
        "data": config.data.model_dump() | {"sha256": None if record.data is None else record.data.sha256},
        "tokenizer": None if record.data is None else record.data.tokenizer_sha256,
        "tokenSlotsPerStep": config.token_slots_per_step,
        "sequenceLength": config.sequence_length,
        "seed": config.seed,
        "steps": config.steps,
        "warmupSteps": config.warmup_steps,
        "image": config.image,
        "versions": record.versions,
        "backend": config.backend,
        "cpusPerRank": config.cpus_per_rank,
        "memoryGibPerRank": config.memory_gib_per_rank,
    }
    if vary == "topology":
        # Accumulation follows from the ranks, so that the tokens of a step stay equal.
        must["recipe"] = config.recipe.model_dump(exclude={"accumulation"})
    if vary == "recipe":
        must["topology"] = config.topology
        must["machine"] = config.machine
    return dict(_flat("", must))


def _foreign_key(run: Run) -> dict[str, Any]:
    """Of a job that isn't ours its command stands for model, data and recipe."""
    config = run.record.config
    return {
        "command": list(config.command or ()),
        "steps": config.steps,
        "warmupSteps": config.warmup_steps,
        "image": config.image,
        "versions": run.record.versions,
        "backend": config.backend,
        "cpusPerRank": config.cpus_per_rank,
        "memoryGibPerRank": config.memory_gib_per_rank,
    }


def step_series(run: Run) -> Series:
    """Seconds of each timed step, in order: the slowest rank's."""
    return np.array(step_seconds(timed_steps(run.steps)))


def _refuse_mixed(arm: Arm) -> None:
    for run in arm.runs[1:]:
        for field in ("topology", "machine", "recipe"):
            first, other = getattr(arm.config, field), getattr(run.record.config, field)
            if first != other:
                raise ValueError(
                    f"arm {arm.name} has two different values of {field} (runs "
                    f"{arm.runs[0].record.run_id} and {run.record.run_id}), so its runs are no repeats; "
                    "report them apart or rename one arm"
                )


def _flat(path: str, value: Any) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        parts = [_flat(f"{path}.{key}" if path else key, inner) for key, inner in value.items()]
        return [pair for part in parts for pair in part]
    return [(path, json.dumps(value))]


def _differences(runs: Sequence[Run], keys: Mapping[str, Mapping[str, str]]) -> list[Difference]:
    found = []
    for key in sorted({key for values in keys.values() for key in values}):
        by_value: dict[str, list[str]] = {}
        for run in runs:
            arms = by_value.setdefault(keys[run.record.run_id].get(key, "absent"), [])
            if run.record.config.arm not in arms:
                arms.append(run.record.config.arm)
        if len(by_value) > 1:
            found.append(Difference(key, {value: tuple(arms) for value, arms in by_value.items()}))
    return found


def _refuse(differences: Sequence[Difference], vary: Vary, allow: Collection[str]) -> None:
    refused = [each for each in differences if not _is_allowed(each.key, allow)]
    if refused:
        raise ValueError(
            f"these runs did not do the same work (what varies is `{vary}`): "
            f"{' | '.join(str(each) for each in refused)}; allow a difference by its name if it is meant"
        )


def _is_allowed(key: str, allow: Collection[str]) -> bool:
    return any(key == name or key.startswith(f"{name}.") for name in allow)


def _hash(equal: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(equal, sort_keys=True).encode()).hexdigest()[:12]


def _baseline(arms: Sequence[Arm]) -> Arm | None:
    for outcome in ("VALID", "UNPROVEN"):
        for arm in arms:
            if arm.counted and arm.outcome == outcome:
                return arm
    return None


def _loss_differences(arms: Sequence[Arm], baseline: Arm | None) -> dict[str, float | None]:
    """Run id to the mean relative difference from the baseline's first run; None: no loss in common."""
    if baseline is None:
        return {}
    reference = baseline.counted[0]
    others = (run for arm in arms for run in arm.counted if run is not reference)
    return {run.record.run_id: _loss_difference(reference, run) for run in others}


def _check_losses(losses: Mapping[str, float | None], baseline: Arm | None, allow: Collection[str]) -> None:
    for run_id, difference in losses.items():
        if difference is not None and difference > LOSS_TOLERANCE and not _is_allowed(LOSS_KEY, allow):
            assert baseline is not None
            reference = baseline.counted[0].record
            raise ValueError(
                f"{LOSS_KEY}: run {run_id} differs from run {reference.run_id} ({baseline.name}) by "
                f"{difference:.2%} on average over the timed steps, {LOSS_TOLERANCE:.0%} is tolerated: they did "
                f"not learn the same; allow `{LOSS_KEY}` if that is meant"
            )


def _loss_difference(one: Run, other: Run) -> float | None:
    first, second = _losses(one), _losses(other)
    shared = sorted(first.keys() & second.keys())
    if not shared:
        return None
    return float(np.mean([abs(first[step] - second[step]) / abs(first[step]) for step in shared]))


def _losses(run: Run) -> dict[int, float]:
    lines = next(iter(run.steps.values()), ())
    return {line.step: line.loss for line in lines if line.phase == "timed" and line.loss}
