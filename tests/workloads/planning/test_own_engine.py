"""Where the planner takes our own engine, and what it says of it beforehand."""

from dataclasses import replace

import pytest

from tests.plan_factory import planned
from trainer.config import RecipeConfig
from workloads.catalogue.models import LLAMA_3_8B, TINY
from workloads.catalogue.topologies import parse_topology
from workloads.planning.memory import memory
from workloads.planning.recipes import candidates, seed_recipe
from workloads.planning.step_time import step_time
from workloads.planning.traffic import traffic
from workloads.planning.work import Work

GIB = 2**30


def _work(topology: str, *, engine: str = "direct", accumulation: int = 8) -> Work:
    """Llama-3-8B, two packed sequences of 8192 a micro-batch, as measured on H200 (docs/diary, 2026-11-21)."""
    a = LLAMA_3_8B.config.architecture
    first = next(iter(candidates(a, cpu=False)))
    recipe = RecipeConfig.model_validate(
        seed_recipe("seed-p4d", a).model_dump()
        | {
            "engine": engine,
            "zero": first.zero.model_dump(),
            "micro_batch": 2,
            "accumulation": accumulation,
            "activation_checkpointing": False,
        }
    )
    return Work(architecture=a, recipe=recipe, topology=parse_topology(topology), sequence_length=8192, feed="packed")


def test_it_is_taken_wherever_zero_1_fits_a_gpu_and_nowhere_else():
    for model in (TINY, LLAMA_3_8B):
        a = model.config.architecture
        assert {(c.zero.stage, c.engine) for c in candidates(a, cpu=False)} == {(1, "direct"), (3, "deepspeed")}
        assert {c.engine for c in candidates(a, cpu=True)} == {"deepspeed"}


def test_a_plan_that_takes_it_has_no_deepspeed_configuration():
    ours = planned("h200x2-1x2-local", model="llama-3-8b")
    assert (ours.config.recipe.engine, ours.deepspeed) == ("direct", {})
    assert planned("cpu-2x1-tcp").deepspeed != {}


@pytest.mark.parametrize(("engine", "copies"), [("direct", 2), ("deepspeed", 3)])
def test_it_sends_two_copies_of_the_weights_a_step_where_deepspeed_sends_three(engine: str, copies: int):
    sent = traffic(_work("h200x4-4x1-tcp", engine=engine))
    assert sent.pod_sent_bytes == pytest.approx(copies * 2 * 8_030_261_248 * 3 / 4)
    assert sent.explained.formula.startswith(f"{copies} S f per step")


def test_gloo_s_reduce_scatter_costs_an_all_reduce():
    tiny = TINY.config.architecture
    work = replace(_work("cpu-2x1-tcp"), architecture=tiny)
    assert traffic(work).explained.formula.startswith("3 S f per step")


@pytest.mark.parametrize(("topology", "allocated_gib"), [("h200x2-1x2-local", 124.3), ("h200x4-1x4-local", 101.9)])
def test_its_memory_is_foretold_within_5_percent_of_what_was_allocated(topology: str, allocated_gib: float):
    runtime = 1.8  # the context and NCCL's buffers, which torch doesn't count
    foretold = memory(_work(topology)).per_rank_gib.expected - runtime
    assert foretold == pytest.approx(allocated_gib, rel=0.05)


@pytest.mark.parametrize(
    ("topology", "step_s"),
    [
        ("h200x2-1x2-local", 11.20),
        ("h200x4-1x4-local", 11.32),
        ("h200x2-2x1-tcp", 15.55),
        ("h200x2-2x1-tcp-tuned", 11.39),
        ("h200x2-2x1-tcp-100gbit-tuned", 12.29),
        ("h200x2-2x1-tcp-25gbit-tuned", 15.34),
    ],
)
def test_a_measured_step_lies_in_its_range(topology: str, step_s: float):
    foretold = step_time(_work(topology)).step_s
    assert foretold.low < step_s < foretold.high


@pytest.mark.parametrize("rate", ["10gbit", "25gbit", "100gbit"])
def test_it_exposes_less_of_a_slow_link_than_deepspeed_does(rate: str):
    ours, theirs = (
        step_time(_work(f"h200x4-4x1-tcp-{rate}", engine=engine)).exposed_communication_s
        for engine in ("direct", "deepspeed")
    )
    assert ours.low < theirs.low
    assert ours.expected < theirs.expected
    assert ours.high < theirs.high


def test_recomputation_makes_room_for_four_times_the_tokens():
    work = _work("h200x2-1x2-local")
    again = replace(work, recipe=work.recipe.model_copy(update={"activation_checkpointing": True, "micro_batch": 8}))
    assert memory(again).per_rank_gib.expected < memory(work).per_rank_gib.expected
