"""Runs an experiment on this machine: plan, render, merge into Pods, run them, find the records."""

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from workloads.catalogue.machines import Machine
from workloads.lab.arm import ArmOutcome, Bench, run_arm
from workloads.lab.capability import Capability, probe
from workloads.lab.events import Event, Noted
from workloads.lab.experiments import PlannedExperiment
from workloads.lab.fetch import fetch_data
from workloads.planning.plan import ArmInput, Plan, plan_arms
from workloads.rendering.bindings import Bindings, Document
from workloads.rendering.manifests import documents
from workloads.rendering.mounts import CHECKPOINTS
from workloads.rendering.pods import pods

RECORD_FILE = "record.json"
LEAST_FREE_BYTES = 64 * 2**20
"""Records of the default experiment take 1 MiB; logs of larger ones some tens."""
POD_LOGS = "pod-logs"
"""Folder of what the pods printed, a folder a turn: of a turn without a record it is all there is."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One arm of one repeat, when its turn comes."""

    number: int
    of: int
    repeat: int
    plan: Plan


@dataclass(frozen=True, kw_only=True)
class TurnOutcome:
    """How a turn ended; a failed one may have written no record."""

    turn: Turn
    arm: ArmOutcome
    record: Path | None
    failure: str | None


@dataclass(frozen=True, kw_only=True)
class LabOutcome:
    """All turns in the order in which they ran."""

    turns: tuple[TurnOutcome, ...]

    @property
    def records(self) -> tuple[Path, ...]:
        """Folders of the records that were written."""
        return tuple(t.record for t in self.turns if t.record is not None)

    @property
    def failures(self) -> tuple[str, ...]:
        """One text a failed turn."""
        return tuple(t.failure for t in self.turns if t.failure is not None)


@dataclass(frozen=True, kw_only=True)
class Observer:
    """Whom the lab tells what happens; each call returns at once."""

    turn_begins: Callable[[Turn], None]
    event: Callable[[Turn, Event], None]
    turn_ends: Callable[[TurnOutcome], None]


def run_experiment(
    planned: PlannedExperiment,
    machine: Machine,
    out: Path,
    cache: Path,
    observer: Observer,
    capability: Capability | None = None,
    interpreter: Path = Path(sys.executable),
) -> LabOutcome:
    """Run every arm `repeats` times in rotated order; records go to `out`/<experiment>/<run id>/,
    what the pods printed beside them.

    A failed turn doesn't stop the others. `cache` is a folder that outlives the lab, for data and tokenizers;
    `interpreter` has the trainer's packages.
    Raises ValueError where this machine can't run the experiment at all.
    """
    folder = out.absolute() / planned.experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    _check_space(folder)
    cache.mkdir(parents=True, exist_ok=True)
    bench = Bench(
        interpreter=interpreter,
        environment={"TOPOLAB_CACHE": str(cache.absolute()), "HF_HUB_OFFLINE": "1"},
        shared_folders=(cache.absolute(),),
        capability=capability or probe(),
    )
    # All arms train on the same samples, whatever their pods.
    fetch_data(planned.plans[0].config, cache, interpreter)
    ends = []
    for turn in turns(planned, machine):
        observer.turn_begins(turn)
        ends.append(_take(turn, folder, machine, bench, observer))
        observer.turn_ends(ends[-1])
    return LabOutcome(turns=tuple(ends))


def turns(planned: PlannedExperiment, machine: Machine) -> list[Turn]:
    """The turns in their order: each repeat is an attempt of its own and begins one arm further on.

    So no arm always runs first on a cold machine, and a drift of the machine spreads over the arms.
    """
    count = len(planned.plans)
    order = [
        (repeat, plan)
        for repeat in range(planned.experiment.repeats)
        for plan in _rotated(_attempt(planned, machine, repeat), repeat % count)
    ]
    return [Turn(number=i, of=len(order), repeat=repeat, plan=plan) for i, (repeat, plan) in enumerate(order, start=1)]


def _check_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        raise ValueError(
            f"{folder}: {free // 2**20} MiB are free and a lab's records want {LEAST_FREE_BYTES // 2**20}; "
            "make room, or give another folder with --out"
        )


def _rotated(plans: Sequence[Plan], by: int) -> list[Plan]:
    return [*plans[by:], *plans[:by]]


def _attempt(planned: PlannedExperiment, machine: Machine, repeat: int) -> tuple[Plan, ...]:
    if repeat == 0:
        return planned.plans
    return plan_arms(
        tuple(_next_attempt(arm, repeat) for arm in planned.arms),
        vary=planned.experiment.vary,
        experiment=planned.experiment.name,
        detected=machine,
    )


def _next_attempt(arm: ArmInput, repeat: int) -> ArmInput:
    run = arm.stack.run.model_copy(update={"attempt": arm.stack.run.attempt + repeat})
    return replace(arm, stack=arm.stack.model_copy(update={"run": run}))


def _take(turn: Turn, folder: Path, machine: Machine, bench: Bench, observer: Observer) -> TurnOutcome:
    """The turn to its end, started over as JobSet would. What an earlier lab saved here is not this turn's."""
    shutil.rmtree(folder / CHECKPOINTS / turn.plan.job_name, ignore_errors=True)
    for restarts in range(turn.plan.restarts + 1):
        outcome = _start(turn, restarts, folder, machine, bench, observer)
        if outcome.arm.failure is None:
            break
        if restarts < turn.plan.restarts:
            observer.event(turn, Noted(f"start {restarts + 1} failed; starting over"))
    return outcome


def _start(turn: Turn, restarts: int, folder: Path, machine: Machine, bench: Bench, observer: Observer) -> TurnOutcome:
    rendered = documents(turn.plan, Bindings.local(records_path=str(folder)))
    by_kind: Mapping[str, Document] = {d["kind"]: d for d in rendered}
    before = _runs(folder, turn.plan.job_name)
    again = f"-start-{restarts + 1}" if restarts else ""
    outcome = run_arm(
        pods(by_kind["TrainJob"], by_kind["ClusterTrainingRuntime"], restarts),
        rendered,
        turn.plan.topology.rate_bits_per_s,
        folder / POD_LOGS / f"{turn.number:02d}-{turn.plan.job_name}{again}",
        range(machine.node_gpus),
        lambda event: observer.event(turn, event),
        bench,
    )
    written = sorted(_runs(folder, turn.plan.job_name) - before)
    failure = outcome.failure
    if failure is None and len(written) != 1:
        failure = f"{turn.plan.job_name} ended well but wrote {len(written)} records under {folder}"
    record = written[0] if len(written) == 1 else None
    return TurnOutcome(turn=turn, arm=outcome, record=record, failure=failure)


def _runs(folder: Path, job_name: str) -> set[Path]:
    """Records of that job: folders named <job>-<start>, so another job's longer name doesn't match."""
    return {p.parent for p in folder.glob(f"{job_name}-[0-9]*T*Z/{RECORD_FILE}")}
