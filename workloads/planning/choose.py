"""Choosing a recipe: `auto` takes the least burdened that fits, `best` the one that is predicted fastest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from trainer.config import Architecture, RecipeConfig
from workloads.catalogue.topologies import Topology
from workloads.planning.memory import fits, memory
from workloads.planning.recipes import SEED_RECIPES, Candidate, candidates, learning_rate, seed_recipe
from workloads.planning.step_time import step_time
from workloads.planning.work import Work

_MAX_TOKENS_PER_MICRO_BATCH = 131_072
"""More tokens in one pass gain nothing: compute hides everything long before."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What a recipe is chosen for: one arm, its batch already divided among the ranks."""

    architecture: Architecture
    topology: Topology
    sequence_length: int
    feed: Literal["lines", "packed"]
    sequences_per_rank: int
    """Of one optimizer step; 0 with a seed recipe, which brings its own."""
    omp_threads: int


def choose(name: str, arms: Sequence[Situation]) -> tuple[RecipeConfig, ...]:
    """One recipe an arm, in order.

    `auto`: one candidate and one micro-batch serve all arms, so that only accumulation differs. `best`: each
    arm its own. Where nothing fits, the leanest is returned and its memory prediction says by how much.
    """
    if name in SEED_RECIPES:
        return tuple(seed_recipe(name, arm.architecture) for arm in arms)
    if name == "best":
        return tuple(_fastest(arm) for arm in arms)
    return _least_burdened(arms)


def work_of(arm: Situation, recipe: RecipeConfig) -> Work:
    """The arm with its recipe: what predictions take."""
    return Work(
        architecture=arm.architecture,
        recipe=recipe,
        topology=arm.topology,
        sequence_length=arm.sequence_length,
        feed=arm.feed,
    )


def _least_burdened(arms: Sequence[Situation]) -> tuple[RecipeConfig, ...]:
    leanest: tuple[RecipeConfig, ...] = ()
    for candidate in _candidates(arms[0]):
        for micro_batch in _micro_batches(arms):
            recipes = tuple(_recipe("auto", arm, candidate, micro_batch) for arm in arms)
            if all(_fits(arm, recipe) for arm, recipe in zip(arms, recipes, strict=True)):
                return recipes
            leanest = recipes
    return leanest


def _fastest(arm: Situation) -> RecipeConfig:
    fitting = [
        recipe
        for candidate in _candidates(arm)
        for micro_batch in _micro_batches([arm])
        if _fits(arm, recipe := _recipe("best", arm, candidate, micro_batch))
    ]
    if not fitting:
        return _least_burdened([arm])[0].model_copy(update={"name": "best"})
    return min(fitting, key=lambda recipe: step_time(work_of(arm, recipe)).step_s.expected)


def _candidates(arm: Situation) -> Iterator[Candidate]:
    return candidates(arm.architecture, cpu=arm.topology.machine.gpu is None)


def _fits(arm: Situation, recipe: RecipeConfig) -> bool:
    return fits(memory(work_of(arm, recipe)))


def _micro_batches(arms: Sequence[Situation]) -> list[int]:
    """Sizes that divide every arm's share, the largest first."""
    smallest = min(arm.sequences_per_rank for arm in arms)
    return [
        n
        for n in range(smallest, 0, -1)
        if all(arm.sequences_per_rank % n == 0 for arm in arms)
        and (n == 1 or n * arms[0].sequence_length <= _MAX_TOKENS_PER_MICRO_BATCH)
    ]


def _recipe(name: str, arm: Situation, candidate: Candidate, micro_batch: int) -> RecipeConfig:
    return RecipeConfig(
        name=name,
        engine=candidate.engine,
        zero=candidate.zero,
        micro_batch=micro_batch,
        accumulation=arm.sequences_per_rank // micro_batch,
        activation_checkpointing=candidate.activation_checkpointing,
        learning_rate=learning_rate(arm.architecture),
        gradient_clipping=1.0,
        omp_threads=arm.omp_threads,
    )
