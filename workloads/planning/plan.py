"""Plan: topology x run x platform, checked and complete."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from trainer.config import (
    DataConfig,
    PredictedRange,
    PredictedRun,
    RecipeConfig,
    Rental,
    TrainConfig,
)
from trainer.deepspeed_config import deepspeed_config
from workloads.catalogue.machines import Machine
from workloads.catalogue.models import Model, find_model
from workloads.catalogue.topologies import Topology, parse_topology
from workloads.catalogue.versions import STOCK_IMAGE
from workloads.planning.capacity import end_faults
from workloads.planning.checks import (
    Batch,
    batch,
    job_name,
    memory_faults,
    money_faults,
    nan_faults,
    platform_faults,
    run_faults,
    stack_faults,
)
from workloads.planning.choose import Situation, choose, work_of
from workloads.planning.expectations import expected_of
from workloads.planning.predict import predict
from workloads.planning.prediction import Prediction, StepPrediction
from workloads.planning.probing import probe_s
from workloads.planning.recipes import SEED_RECIPES
from workloads.planning.resources import PodResources, cpus_per_rank, memory_gib_per_rank, pod_resources
from workloads.planning.spec import CapacityMode, Fault, ImageBase, Platform, SpecError, Stack, Vary, unknown_model
from workloads.planning.transports import backend_of, variables

NAMESPACE = "topolab"

_PATIENCE, _LEAST_PATIENCE_S, _MOST_PATIENCE_S = 10.0, 120.0, 900.0
"""Times the upper predicted step; at least what a node's hiccup takes, at most the collectives' own timeout."""


@dataclass(frozen=True, kw_only=True)
class EnvVariable:
    """One environment variable of the trainer's container, and why it is set."""

    name: str
    value: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Image:
    """What the pods run. `mounted`: the trainer comes from a ConfigMap and locked wheels are added."""

    reference: str | None
    """None on a local machine: its own python runs."""
    mounted: bool


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that rendering, the lab and the Pulumi program need to know of one arm."""

    topology: Topology
    platform: Platform
    job_name: str
    config: TrainConfig
    deepspeed: dict[str, object]
    """Empty where the engine is the trainer's own."""
    resources: PodResources
    environment: tuple[EnvVariable, ...]
    image: Image
    deadline_s: int
    needs_hf_token: bool
    capacity: CapacityMode
    restarts: int
    """How often JobSet starts the gang over once a pod has failed."""
    prediction: Prediction

    @property
    def saves(self) -> bool:
        """Whether the run writes checkpoints that another start reads."""
        return self.config.resume or self.config.checkpoint_every_steps is not None

    @property
    def nodes(self) -> int:
        """Nodes that the pods occupy."""
        return self.topology.nodes


@dataclass(frozen=True, kw_only=True)
class ArmInput:
    """One arm before it is planned."""

    name: str
    stack: Stack
    region: str | None
    """aws:region; None where no cloud is meant, and then no price is known."""


def plan(
    stack: Stack,
    *,
    region: str | None,
    experiment: str,
    arm: str,
    detected: Machine | None = None,
    now: datetime | None = None,
) -> Plan:
    """The complete plan of one stack, or a SpecError with every fault at once.

    `detected` is the machine that the lab found here, for GPUs that the catalogue doesn't name. `now`, aware of its
    zone: when the run would begin; None: nobody means to begin, so no capacity block is held against the clock.
    """
    only = ArmInput(name=arm, stack=stack, region=region)
    one = plan_arms((only,), vary="topology", experiment=experiment, detected=detected)[0]
    if now is not None:
        _refuse(experiment, tuple(end_faults(one.platform.capacity, one.prediction.wall_clock_s, now)))
    return one


def plan_arms(
    arms: Sequence[ArmInput], *, vary: Vary, experiment: str, detected: Machine | None = None
) -> tuple[Plan, ...]:
    """Plans of the arms of one experiment, in order; SpecError holds the faults of all arms.

    Under `vary: topology` one resolved recipe serves all arms, the micro-batch being the tightest arm's.
    """
    checked = [_check(arm, experiment, detected) for arm in arms]
    faults = tuple(fault for _, found in checked for fault in found)
    inputs = [ready for ready, _ in checked if ready is not None]
    if faults or len(inputs) < len(arms):
        raise SpecError(experiment, faults)
    together = [inputs] if vary == "topology" else [[one] for one in inputs]
    plans = tuple(p for group in together for p in _plan_group(group, experiment))
    _refuse(experiment, tuple(f for p, one in zip(plans, inputs, strict=True) for f in _late_faults(p, one)))
    return plans


@dataclass(frozen=True, kw_only=True)
class _Ready:
    """An arm whose names exist and whose numbers divide."""

    arm: ArmInput
    topology: Topology
    model: Model
    batch: Batch
    feed: Literal["lines", "packed"]
    prefix: str
    """Before each field of a fault, so that a reader knows which arm."""


def _check(arm: ArmInput, experiment: str, detected: Machine | None) -> tuple[_Ready | None, tuple[Fault, ...]]:
    stack, faults = arm.stack, [*stack_faults(arm.stack)]
    prefix = "" if arm.name == experiment else f"{arm.name}: "
    model = find_model(stack.run.model)
    if model is None:
        faults.append(unknown_model(stack.run.model))
    try:
        topology = parse_topology(stack.topology, detected)
    except ValueError as error:
        faults.append(
            Fault(
                field="topology",
                value=stack.topology,
                message=str(error).removeprefix(f"{stack.topology!r}: "),
            )
        )
        return None, _prefixed(prefix, faults)
    faults += platform_faults(topology, stack.platform, arm.region)
    if model is None:
        return None, _prefixed(prefix, faults)
    faults += run_faults(topology, model, stack)
    divided, batch_faults = batch(topology, model, stack.run)
    feed = stack.run.data.feed or ("lines" if stack.run.recipe in SEED_RECIPES else "packed")
    ready = _Ready(arm=arm, topology=topology, model=model, batch=divided, feed=feed, prefix=prefix)
    return ready, _prefixed(prefix, [*faults, *batch_faults])


def _prefixed(prefix: str, faults: Sequence[Fault]) -> tuple[Fault, ...]:
    return tuple(Fault(field=f"{prefix}{f.field}", value=f.value, message=f.message) for f in faults)


def _refuse(where: str, faults: tuple[Fault, ...]) -> None:
    if faults:
        raise SpecError(where, faults)


def _plan_group(group: Sequence[_Ready], experiment: str) -> tuple[Plan, ...]:
    situations = [_situation(one) for one in group]
    companions = [_situation(other) for one in group for other in _companions(one, experiment)]
    names = {one.arm.stack.run.recipe for one in group}
    if len(names) > 1:
        raise SpecError(
            experiment,
            (
                Fault(
                    field="run.recipe",
                    value=sorted(names),
                    message="differs between arms under vary: topology; vary recipe, or give one",
                ),
            ),
        )
    # Recipes of the companions are not ours to run: they only keep ours such that theirs can be the same.
    recipes = choose(names.pop(), [*situations, *companions])[: len(group)]
    return tuple(
        _complete(one, situation, recipe, experiment)
        for one, situation, recipe in zip(group, situations, recipes, strict=True)
    )


def _companions(one: _Ready, experiment: str) -> Iterator[_Ready]:
    """The arms that a stack says it will be compared with, as far as a recipe depends on them."""
    for name in one.arm.stack.run.compared_with:
        stack = one.arm.stack.model_copy(update={"topology": name})
        ready, faults = _check(replace(one.arm, stack=stack), experiment, None)
        _refuse(f"{experiment}, run.comparedWith {name}", faults)
        assert ready is not None, "no fault, so it is ready"
        yield ready


def _situation(one: _Ready) -> Situation:
    return Situation(
        architecture=one.model.config.architecture,
        topology=one.topology,
        sequence_length=one.batch.sequence_length,
        feed=one.feed,
        sequences_per_rank=one.batch.sequences_per_rank,
        omp_threads=max(1, int(cpus_per_rank(one.topology))),
    )


def _complete(one: _Ready, situation: Situation, recipe: RecipeConfig, experiment: str) -> Plan:
    stack, topology = one.arm.stack, one.topology
    image = _image(topology, stack.platform)
    prediction = predict(work_of(situation, recipe), steps=stack.run.steps, region=one.arm.region)
    config = _config(one, recipe, experiment, image, prediction)
    return Plan(
        topology=topology,
        platform=stack.platform,
        job_name=config.job_name,
        config=config,
        deepspeed=deepspeed_config(config) if recipe.engine == "deepspeed" else {},
        resources=pod_resources(topology),
        environment=_environment(config, topology, stack.platform),
        image=image,
        deadline_s=stack.platform.ttl_minutes * 60,
        needs_hf_token=stack.hf_token and config.data.source != "embedded",
        capacity=stack.platform.capacity.mode,
        restarts=stack.run.restarts_allowed,
        prediction=prediction,
    )


def _image(topology: Topology, platform: Platform) -> Image:
    if topology.machine.is_local:
        return Image(reference=None, mounted=True)
    if isinstance(platform.image, ImageBase):
        return Image(reference=platform.image.base, mounted=True)
    if platform.image == "stock":
        return Image(reference=STOCK_IMAGE, mounted=True)
    return Image(reference=platform.image, mounted=False)


def _is_stock(image: str | ImageBase) -> bool:
    """Also where its digest was pinned."""
    return image == "stock" or (isinstance(image, ImageBase) and image.base.partition("@")[0] == STOCK_IMAGE)


def _config(one: _Ready, recipe: RecipeConfig, experiment: str, image: Image, prediction: Prediction) -> TrainConfig:
    run, topology, machine = one.arm.stack.run, one.topology, one.topology.machine
    return TrainConfig(
        command=None,
        experiment=experiment,
        arm=one.arm.name,
        topology=topology.name,
        machine=machine.name,
        job_name=job_name(topology, run),
        attempt=run.attempt,
        pods=topology.pods,
        ranks_per_pod=topology.gpus_per_pod,
        backend=backend_of(topology),
        peak_flops_per_s=None if machine.gpu is None else machine.gpu.peak_flops_per_s,
        model=one.model.config,
        data=DataConfig(source=run.data.source, feed=one.feed),
        recipe=recipe,
        sequence_length=one.batch.sequence_length,
        steps=run.steps,
        warmup_steps=run.warmup_steps if run.steps else 0,
        probe_s=probe_s(topology, run.steps),
        seed=run.seed,
        checkpoint_every_steps=run.checkpoint_every_steps,
        resume=run.restarts_allowed > 0,
        hang_s=hang_s(prediction.step),
        on_wrong_link=run.on_wrong_link,
        on_nan_loss=run.on_nan_loss,
        expectations=expected_of(topology, prediction.traffic),
        predicted=_predicted(prediction),
        rental=_rental(one, prediction),
        image=image.reference,
        cpus_per_rank=cpus_per_rank(topology),
        memory_gib_per_rank=memory_gib_per_rank(topology),
    )


def hang_s(step: StepPrediction) -> float:
    """Seconds without progress after which a run is ended: a step that takes so long is no slow step any more."""
    return min(max(_PATIENCE * step.step_s.high, _LEAST_PATIENCE_S), _MOST_PATIENCE_S)


def _predicted(prediction: Prediction) -> PredictedRun:
    step = prediction.step
    return PredictedRun(
        step_s=PredictedRange(low=step.step_s.low, expected=step.step_s.expected, high=step.step_s.high),
        parts_s={
            "compute": step.compute_s.expected,
            "exposed communication": step.exposed_communication_s.expected,
            "host copies": step.host_copy_s.expected,
            "optimizer": step.optimizer_s.expected,
        },
        slowest_link=step.slowest_link,
    )


def _rental(one: _Ready, prediction: Prediction) -> Rental:
    """A reservation costs what on demand costs.

    Spot and blocks have no price here: one changes by the hour, the other was paid before; the on-demand price would
    be a wrong number.
    """
    if one.topology.machine.is_local:
        return Rental(region=None, capacity="local", usd_per_node_hour=None, price_source=None)
    capacity = one.arm.stack.platform.capacity.mode
    price = prediction.cost.usd_per_hour if capacity in ("onDemand", "reservation") else None
    source = None if price is None else prediction.cost.explained.source
    return Rental(region=one.arm.region, capacity=capacity, usd_per_node_hour=price, price_source=source)


def _environment(config: TrainConfig, topology: Topology, platform: Platform) -> tuple[EnvVariable, ...]:
    stock = not topology.machine.is_local and _is_stock(platform.image)
    chosen = [*variables(topology, stock_image=stock), *_process_variables(config)]
    return tuple(EnvVariable(name=n, value=v, reason=r) for n, v, r in chosen)


def _process_variables(config: TrainConfig) -> list[tuple[str, str, str]]:
    result = [
        ("PYTHONUNBUFFERED", "1", "a log that stops with the process is no evidence"),
        ("TOKENIZERS_PARALLELISM", "false", "forked workers would warn and wait"),
    ]
    if config.recipe.omp_threads is not None:
        threads = str(config.recipe.omp_threads)
        result.append(("OMP_NUM_THREADS", threads, "equal in all arms: torchrun would set 1 for several ranks"))
    if config.data.source == "embedded":
        result.append(("HF_HUB_OFFLINE", "1", "nothing is fetched for the embedded text"))
    return result


def _late_faults(one: Plan, ready: _Ready) -> tuple[Fault, ...]:
    """What only a resolved recipe and its prediction show."""
    work = work_of(_situation(ready), one.config.recipe)
    host_limit = float(one.resources.memory_gib - one.resources.shm_gib)
    faults = [
        *memory_faults(work, ready.model, one.prediction.memory, host_limit),
        *nan_faults(one.config),
        *money_faults(one.platform, one.prediction.cost, one.prediction.wall_clock_s, region=ready.arm.region),
    ]
    return _prefixed(ready.prefix, faults)
