"""What a plan refuses, as faults that name the field, the value and the remedy. Pure functions."""

from collections.abc import Iterator

from trainer.config import TrainConfig
from trainer.contract import Contract
from workloads.catalogue.models import MODELS, Model
from workloads.catalogue.topologies import NAMED_TOPOLOGIES, Topology, parse_topology
from workloads.planning.capacity import capacity_faults
from workloads.planning.memory import SAFETY, fits, memory
from workloads.planning.prediction import CostPrediction, MemoryPrediction, Range
from workloads.planning.recipes import SEED_BATCH, SEED_RECIPES, SEED_SEQUENCE_LENGTH
from workloads.planning.spec import Fault, Platform, Run, Stack
from workloads.planning.work import Work

JOB_NAME_LIMIT = 40
"""Longer names make pod host names that DNS refuses."""


class Batch(Contract):
    """The batch of one optimizer step, divided among the ranks."""

    sequence_length: int
    sequences_per_rank: int


def stack_faults(stack: Stack) -> Iterator[Fault]:
    """What is wrong whatever the topology and the model."""
    yield from _not_yet(stack.platform)
    yield from capacity_faults(stack.platform.capacity)
    yield from _storage_faults(stack.platform)
    yield from _access_faults(stack.platform)
    run = stack.run
    if run.steps == 0:
        yield from _probe_only_faults(run)
    elif run.steps <= run.warmup_steps:
        yield _fault("run.steps", run.steps, f"leaves no timed step after {run.warmup_steps} warm-up steps; raise it")
    if run.recipe in SEED_RECIPES and run.data.feed == "packed":
        yield _fault("run.data.feed", "packed", f"{run.recipe} feeds lines; use lines or another recipe")


def _probe_only_faults(run: Run) -> Iterator[Fault]:
    """`steps: 0` probes and ends; what would be ignored is refused."""
    if run.checkpoint_every_steps is not None:
        yield _fault(
            "run.checkpointEverySteps",
            run.checkpoint_every_steps,
            "steps: 0 trains nothing, so nothing is saved; remove it",
        )
    if run.restarts:
        yield _fault("run.restarts", run.restarts, "steps: 0 leaves nothing to go on from; remove it")


def platform_faults(topology: Topology, platform: Platform, region: str | None) -> Iterator[Fault]:
    """What the platform can't give this topology."""
    if topology.machine.is_local:
        yield from _local_faults(platform)
        return
    if platform.zone is None:
        yield _fault("platform.zone", None, "is missing; name the availability zone that has the instance type")
    elif region is not None and not platform.zone.startswith(region):
        yield _fault("platform.zone", platform.zone, f"lies outside aws:region {region}; name a zone of it")
    if platform.records.startswith("file:"):
        yield _fault("platform.records", platform.records, "pods on EC2 can't write there; use managed or s3://")


def _not_yet(platform: Platform) -> Iterator[Fault]:
    if platform.shared_with is not None:
        yield _fault("platform.sharedWith", platform.shared_with, "sharing a platform isn't built yet; remove the key")


def _storage_faults(platform: Platform) -> Iterator[Fault]:
    if platform.storage.keep and platform.storage.fsx == "none":
        yield _fault("platform.storage.keep", True, "keeps nothing without a file system; set fsx or remove it")


def _access_faults(platform: Platform) -> Iterator[Fault]:
    if platform.api_endpoint == "private" and platform.api_access_cidrs:
        blocks = list(platform.api_access_cidrs)
        yield _fault("platform.apiAccessCidrs", blocks, "nobody reaches a private endpoint by them; remove one of both")
    twice = sorted({one for one in platform.admins if platform.admins.count(one) > 1})
    if twice:
        yield _fault("platform.admins", twice, "named twice, and EKS takes an entry once; keep one")


def _local_faults(platform: Platform) -> Iterator[Fault]:
    if platform.storage.fsx != "none":
        yield _fault("platform.storage.fsx", platform.storage.fsx, "needs EC2; use none on a local machine")
    if platform.records.startswith("s3:"):
        yield _fault(
            "platform.records",
            platform.records,
            "pods of a local machine have no route out; use managed or file:///folder and upload after",
        )


def run_faults(topology: Topology, model: Model, stack: Stack) -> Iterator[Fault]:
    """What the run can't be on this topology with this model."""
    run = stack.run
    if len(job_name(topology, run)) > JOB_NAME_LIMIT:
        yield _fault(
            "topology",
            topology.name,
            f"TrainJob {job_name(topology, run)} has over {JOB_NAME_LIMIT} characters",
        )
    yield from _seed_faults(topology, run)
    yield from _data_faults(model, stack)
    yield from _checkpoint_faults(topology, stack)


def _seed_faults(topology: Topology, run: Run) -> Iterator[Fault]:
    if run.recipe not in SEED_RECIPES:
        return
    if topology.machine.gpu is None:
        yield _fault("run.recipe", run.recipe, "offloads from GPUs and the machine has none; use auto")


def _data_faults(model: Model, stack: Stack) -> Iterator[Fault]:
    source = stack.run.data.source
    if source == "embedded":
        return
    if model.config.tokenizer is None:
        yield _fault("run.data.source", source, f"{model.name} knows only the embedded text's tokenizer; use embedded")
    if model.gated_tokenizer and not stack.hf_token:
        yield _fault(
            "hfToken",
            None,
            f"{source} needs {model.config.tokenizer}'s tokenizer, which is gated: accept its licence, then "
            "`pulumi config set --secret topolab:hfToken`, or use data.source embedded",
        )


def _checkpoint_faults(topology: Topology, stack: Stack) -> Iterator[Fault]:
    """Where pods may stand on another node next time, what they saved on this one is out of their reach."""
    run = stack.run
    if topology.machine.is_local or stack.platform.storage.fsx != "none":
        return
    if run.checkpoint_every_steps is not None:
        yield _fault(
            "run.checkpointEverySteps",
            run.checkpoint_every_steps,
            "checkpoints need platform.storage.fsx scratch or persistent",
        )
    if run.restarts:
        yield _fault(
            "run.restarts",
            run.restarts,
            "pods that start over may stand on other nodes and would find no checkpoint; set platform.storage.fsx "
            "scratch or persistent, or restarts 0",
        )


def nan_faults(config: TrainConfig) -> Iterator[Fault]:
    """DeepSpeed looks for gradients that aren't finite in its stages 1 and 2; in bf16, stage 3 applies them."""
    stage = config.recipe.zero.stage
    if config.on_nan_loss == "skip" and stage == 3:
        yield _fault(
            "run.onNanLoss",
            "skip",
            f"recipe {config.recipe.name} is ZeRO stage {stage} here, which applies such an update before anybody can "
            "stop it; use stop, or more memory per GPU, so that stage 1 fits",
        )


def job_name(topology: Topology, run: Run) -> str:
    """Name of the TrainJob: a repeated run is a new attempt, so a new TrainJob."""
    return f"{topology.name}-{run.attempt}"


def batch(topology: Topology, model: Model, run: Run) -> tuple[Batch, tuple[Fault, ...]]:
    """The batch of one step and what is wrong with it.

    A seed recipe brings micro-batch and accumulation, so its global batch follows from the ranks.
    """
    seed = run.recipe in SEED_RECIPES
    length = run.sequence_length or (SEED_SEQUENCE_LENGTH if seed else 2048)
    limit = model.config.architecture.max_positions
    faults = []
    if length > limit:
        faults.append(_fault("run.sequenceLength", length, f"{model.name} reaches {limit}; lower it"))
    if seed:
        faults += _seed_batch_faults(topology, run, length)
        return Batch(sequence_length=length, sequences_per_rank=0), tuple(faults)
    tokens = run.global_batch_tokens or 131_072
    multiple = length * topology.ranks
    if tokens % multiple:
        below = tokens // multiple * multiple
        faults.append(
            _fault(
                "run.globalBatchTokens",
                tokens,
                f"must be a multiple of sequenceLength {length} x {topology.ranks} ranks = {multiple}; "
                f"nearest: {', '.join(str(n) for n in (below, below + multiple) if n)}",
            )
        )
    sequences = max(1, tokens // multiple)
    return Batch(sequence_length=length, sequences_per_rank=sequences), tuple(faults)


def _seed_batch_faults(topology: Topology, run: Run, length: int) -> list[Fault]:
    micro, accumulation = SEED_BATCH[run.recipe]
    own = micro * accumulation * topology.ranks * length
    if run.global_batch_tokens in (None, own):
        return []
    return [
        _fault(
            "run.globalBatchTokens",
            run.global_batch_tokens,
            f"{run.recipe} fixes {micro} x {accumulation} x {topology.ranks} ranks x {length} = {own}; "
            "leave the key out",
        )
    ]


def memory_faults(work: Work, model: Model, prediction: MemoryPrediction, host_limit_gib: float) -> Iterator[Fault]:
    """A model that doesn't fit the GPUs or the pod's host memory: by how much, and what does fit."""
    limit = prediction.limit_gib
    if limit is not None and not fits(prediction):
        missing = prediction.per_rank_gib.expected * SAFETY - limit
        yield _fault(
            "run.model",
            model.name,
            f"recipe {work.recipe.name} needs {prediction.per_rank_gib.expected:.1f} GiB and a margin of 8% "
            f"per rank, {missing:.1f} GiB more than the {limit:.1f} of {work.topology.machine.name}"
            f"{_nearest_fit(work, model)}",
        )
    if prediction.host_per_pod_gib.expected > host_limit_gib:
        missing = prediction.host_per_pod_gib.expected - host_limit_gib
        yield _fault(
            "run.recipe",
            work.recipe.name,
            f"needs {prediction.host_per_pod_gib.expected:.0f} GiB of host memory per pod for what it "
            f"offloads, {missing:.0f} GiB more than the pod's {host_limit_gib:.0f}; use more pods or another "
            "recipe",
        )


def _nearest_fit(work: Work, model: Model) -> str:
    smaller = [m.name for m in MODELS if m.name != model.name and _fits_as(work, m, work.topology)]
    larger = [
        row.name
        for row in NAMED_TOPOLOGIES
        if row.name != work.topology.name and _fits_as(work, model, parse_topology(row.name))
    ]
    offers = [f"model {smaller[0]}"] if smaller else []
    offers += [f"topology {larger[0]}"] if larger else []
    return f"; nearest that fits: {' or '.join(offers)}" if offers else "; lower sequenceLength"


def _fits_as(work: Work, model: Model, topology: Topology) -> bool:
    return fits(
        memory(
            Work(
                architecture=model.config.architecture,
                recipe=work.recipe,
                topology=topology,
                sequence_length=min(work.sequence_length, model.config.architecture.max_positions),
                feed=work.feed,
            )
        )
    )


def money_faults(
    platform: Platform, cost: CostPrediction, wall_clock_s: Range, *, region: str | None
) -> Iterator[Fault]:
    """A budget that the upper predicted cost exceeds, and a deadline before the predicted end."""
    budget = platform.budget_usd
    if budget is not None and cost.run_usd is None and region is not None:
        yield _fault(
            "platform.budgetUsd",
            budget,
            f"no price is known in {region}, so it can't be held; remove the key",
        )
    if budget is not None and cost.run_usd is not None and cost.run_usd.high > budget:
        yield _fault(
            "platform.budgetUsd",
            budget,
            f"the run may cost up to {cost.run_usd.high:.2f} USD (expected {cost.run_usd.expected:.2f}); "
            "raise the budget or lower run.steps",
        )
    if wall_clock_s.expected > platform.ttl_minutes * 60:
        yield _fault(
            "platform.ttlMinutes",
            platform.ttl_minutes,
            f"the run is predicted to take {wall_clock_s.expected / 60:.0f} minutes; raise it or lower run.steps",
        )


def _fault(field: str, value: object, message: str) -> Fault:
    return Fault(field=field, value=value, message=message)
