"""Recipes: how the trainer uses memory and links.

`seed-g6e` and `seed-p4d` are the seeds' values to the letter. `candidates` lists what `auto` and `best` may
choose from, the least burdened first; planning.plan takes the first that fits (`auto`) or the fastest
(`best`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from trainer.config import Architecture, Engine, RecipeConfig, ZeroConfig
from trainer.flops import layer_parameters, parameters

SEED_SEQUENCE_LENGTH = 512
"""Truncation length of a line: an assumption of ours, the pages don't state it."""

SEED_BATCH = {"seed-g6e": (4, 4), "seed-p4d": (1, 4)}
"""Micro-batch and accumulation of the seeds' recipes."""

SEED_RECIPES = tuple(SEED_BATCH)

LEARNING_RATE = 2e-5
"""The seeds' AdamW rate, kept for all recipes so that losses compare."""
TINY_LEARNING_RATE = 1e-3
"""Under ten million parameters 2e-5 learns nothing in a lab's thirty steps."""


def seed_recipe(name: str, a: Architecture) -> RecipeConfig:
    """The seeds' recipe of that name, DeepSpeed's `auto` values resolved as transformers does.

    reduce bucket h^2, prefetch bucket 0.9 h^2, persistence threshold 10 h (h: hidden size).
    """
    assert name in SEED_RECIPES
    wide = name == "seed-g6e"
    micro_batch, accumulation = SEED_BATCH[name]
    h = a.hidden_size
    return RecipeConfig(
        name=name,
        zero=ZeroConfig(
            stage=3,
            offload_optimizer=True,
            offload_parameters=True,
            sub_group_size=1_000_000_000 if wide else 100_000_000,
            reduce_bucket_size=h * h if wide else 50_000_000,
            prefetch_bucket_size=int(0.9 * h * h) if wide else 50_000_000,
            persistence_threshold=10 * h,
            max_live_parameters=1_000_000_000 if wide else 100_000_000,
            max_reuse_distance=1_000_000_000 if wide else 100_000_000,
            gather_16bit_weights_on_save=not wide,
        ),
        micro_batch=micro_batch,
        accumulation=accumulation,
        activation_checkpointing=not wide,
        learning_rate=LEARNING_RATE,
        gradient_clipping=1.0,
        omp_threads=None,
        save_at_end=wide,
    )


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One way to hold the model; micro-batch and accumulation are still open."""

    engine: Engine = "deepspeed"
    zero: ZeroConfig
    activation_checkpointing: bool


def candidates(a: Architecture, *, cpu: bool) -> Iterator[Candidate]:
    """Ways to hold the model, the least burdened first.

    ZeRO-1 sends once per optimizer step and ZeRO-3 per micro-batch, so ZeRO-1 leads where it fits, by our own
    engine, which sends two thirds of DeepSpeed's bytes and hides them (docs/decisions/0013-own-engine.md); then
    recomputation, then sharded weights, then the CPU. Ranks on a CPU run ZeRO-3, the stage that the seeds
    measure.
    """
    if cpu:
        yield Candidate(zero=_stage_3(a, keep=True), activation_checkpointing=False)
        return
    for recompute in (False, True):
        yield Candidate(engine="direct", zero=_stage_1(a), activation_checkpointing=recompute)
    for keep in (True, False):
        for recompute in (False, True):
            yield Candidate(zero=_stage_3(a, keep=keep), activation_checkpointing=recompute)
    for parameters_too in (False, True):
        yield Candidate(
            zero=_stage_3(a, keep=False, offload=True, offload_parameters=parameters_too),
            activation_checkpointing=True,
        )


def _bucket(a: Architecture) -> int:
    # 2e8 elements keep the number of calls low on network links; a bucket larger than the model is waste.
    return min(200_000_000, parameters(a))


def _stage_1(a: Architecture) -> ZeroConfig:
    return ZeroConfig(
        stage=1,
        sub_group_size=1_000_000_000,
        reduce_bucket_size=_bucket(a),
        prefetch_bucket_size=0,
        persistence_threshold=0,
        max_live_parameters=0,
        max_reuse_distance=0,
    )


def _stage_3(a: Architecture, *, keep: bool, offload: bool = False, offload_parameters: bool = False) -> ZeroConfig:
    # Kept: gathered once a micro-batch. Else three billion live elements, and never less than two blocks.
    live = parameters(a) + 1 if keep else max(3_000_000_000, 2 * layer_parameters(a))
    small = parameters(a) < 100_000_000
    return ZeroConfig(
        stage=3,
        offload_optimizer=offload,
        offload_parameters=offload_parameters,
        sub_group_size=1_000_000_000,
        reduce_bucket_size=_bucket(a),
        prefetch_bucket_size=_bucket(a),
        # A small model lies wholly under the usual threshold and would then never be gathered.
        persistence_threshold=0 if small else 100_000,
        max_live_parameters=live,
        max_reuse_distance=live,
        gather_16bit_weights_on_save=True,
    )


def learning_rate(a: Architecture) -> float:
    """The rate of `auto` and `best`."""
    return TINY_LEARNING_RATE if parameters(a) < 10_000_000 else LEARNING_RATE
