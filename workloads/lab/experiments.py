"""Experiment files: the built-in ones by name, any other by path."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

import yaml

from workloads.catalogue.instances import INSTANCE_TYPES
from workloads.catalogue.machines import Machine
from workloads.planning.plan import ArmInput, Plan, plan_arms
from workloads.planning.spec import Experiment, Fault, SpecError, Stack, parse_experiment

_BUILT_IN = files("workloads") / "experiments"


@dataclass(frozen=True, kw_only=True)
class PlannedExperiment:
    """An experiment and its arms' plans, of the first attempt."""

    experiment: Experiment
    arms: tuple[ArmInput, ...]
    plans: tuple[Plan, ...]


def built_in_names() -> list[str]:
    """Names of the experiments that come with topolab."""
    return sorted(f.name.removesuffix(".yaml") for f in _BUILT_IN.iterdir() if f.name.endswith(".yaml"))


def load_experiment(source: str | None, machine: Machine) -> PlannedExperiment:
    """The experiment of that name or file, planned for this machine; None: the default of the machine.

    `$machine` and `$gpus` in the file become the machine's slug and its GPUs. SpecError and ValueError say
    what is wrong.
    """
    name = source or ("default-gpu" if machine.node_gpus > 1 else "default-cpu")
    text, where = _read(name)
    filled = Template(text).safe_substitute(machine=machine.slug, gpus=machine.node_gpus)
    try:
        values = yaml.safe_load(filled)
    except yaml.YAMLError as error:
        raise ValueError(f"{where}: not YAML ({getattr(error, 'problem', error)}); mend the file") from error
    if not isinstance(values, dict):
        raise ValueError(f"{where}: no experiment in it; it has name, vary, base, arms and repeats")
    experiment, stacks = parse_experiment(values, where)
    _refuse_cloud(stacks, machine, where)
    arms = tuple(ArmInput(name=arm, stack=stack, region=None) for arm, stack in stacks)
    plans = plan_arms(arms, vary=experiment.vary, experiment=experiment.name, detected=machine)
    return PlannedExperiment(experiment=experiment, arms=arms, plans=plans)


def _refuse_cloud(stacks: Sequence[tuple[str, Stack]], machine: Machine, where: str) -> None:
    """EC2 topologies run by `pulumi up`; a name that doesn't parse is the plan's to refuse."""
    ours = machine.slug
    faults = tuple(
        Fault(
            field=f"{arm}: topology",
            value=stack.topology,
            message=f"runs on EC2, and the lab runs on this machine; write {ours}-... here, or use it with `pulumi up`",
        )
        for arm, stack in stacks
        if stack.topology.split("-")[0] in {t.slug for t in INSTANCE_TYPES}
    )
    if faults:
        raise SpecError(where, faults)


def _read(name: str) -> tuple[str, str]:
    if name in built_in_names():
        return (_BUILT_IN / f"{name}.yaml").read_text(), f"experiment {name}"
    try:
        return Path(name).read_text(), name
    except OSError as error:
        built_in = ", ".join(built_in_names())
        raise ValueError(
            f"{name}: no such experiment file ({error.strerror}); give a file or one of: {built_in}"
        ) from error
