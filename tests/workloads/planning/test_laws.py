"""Laws of the prediction that hold for every model, recipe and topology."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.contract import LinkClass
from workloads.catalogue.models import LLAMA_3_2_1B, LLAMA_3_8B, TINY
from workloads.catalogue.topologies import parse_topology
from workloads.planning.memory import memory
from workloads.planning.recipes import SEED_RECIPES, candidates, seed_recipe
from workloads.planning.step_time import step_time
from workloads.planning.traffic import gathers_per_micro_batch, traffic
from workloads.planning.transports import pairs_by_class, ring_rate_gb_per_s
from workloads.planning.work import Work

MODELS = (LLAMA_3_8B, LLAMA_3_2_1B)
NETWORKS = ("g6e12xl-{n}x4-efa1", "g6e12xl-{n}x4-tcp", "g6e8xl-{n}x1-efa1", "p4d24xl-{n}x8-efa4")


def recipes_of(architecture):
    chosen = [seed_recipe(name, architecture) for name in SEED_RECIPES]
    base = chosen[0]
    return [
        *chosen,
        *(
            base.model_copy(
                update={
                    "zero": c.zero,
                    "activation_checkpointing": c.activation_checkpointing,
                    "omp_threads": 4,
                }
            )
            for c in candidates(architecture, cpu=False)
        ),
    ]


@st.composite
def works(draw):
    architecture = draw(st.sampled_from(MODELS)).config.architecture
    recipe = draw(st.sampled_from(recipes_of(architecture))).model_copy(
        update={"micro_batch": draw(st.integers(1, 16)), "accumulation": draw(st.integers(1, 16))}
    )
    topology = parse_topology(draw(st.sampled_from(NETWORKS)).format(n=draw(st.integers(2, 8))))
    return Work(
        architecture=architecture,
        recipe=recipe,
        topology=topology,
        sequence_length=draw(st.sampled_from([128, 2048, 8192])),
        feed=draw(st.sampled_from(["packed", "lines"])),
    )


@given(works())
def test_a_step_never_takes_less_than_its_compute(work):
    step = step_time(work)
    assert step.step_s.low >= step.compute_s.low
    assert step.step_s.expected >= step.compute_s.expected
    assert step.step_s.high >= step.compute_s.high


@given(works())
def test_a_step_never_takes_more_than_all_its_parts_one_after_the_other(work):
    step = step_time(work)
    parts = step.compute_s.plus(step.communication_s).plus(step.host_copy_s).plus(step.optimizer_s)
    assert step.step_s.high <= parts.high * (1 + 1e-9)
    assert step.exposed_communication_s.high <= step.communication_s.high * (1 + 1e-9)


@given(works())
def test_state_memory_falls_as_ranks_rise(work):
    more = replace(work, topology=parse_topology(work.topology.name.replace(f"-{work.topology.pods}x", "-16x")))
    assert memory(more).states_gib <= memory(work).states_gib
    assert memory(more).per_rank_gib.expected <= memory(work).per_rank_gib.expected


@given(works())
def test_bytes_rise_with_ranks_but_never_above_the_whole_copies(work):
    more = replace(work, topology=parse_topology(work.topology.name.replace(f"-{work.topology.pods}x", "-16x")))
    assert traffic(work).pod_sent_bytes <= traffic(more).pod_sent_bytes
    ranks = work.topology.ranks
    whole = traffic(work).collective_bytes_per_rank * ranks / (ranks - 1)
    assert traffic(more).collective_bytes_per_rank < whole * (1 + 1e-9)


@given(st.integers(2, 8), st.sampled_from(MODELS))
def test_a_faster_link_never_slows_a_step(pods, model):
    recipe = seed_recipe("seed-g6e", model.config.architecture)
    links = ("g6e12xl-{n}x4-tcp", "g6e12xl-{n}x4-tcp-pg", "g6e12xl-{n}x4-tcp-tuned")
    steps, rates = [], []
    for link in links:
        topology = parse_topology(link.format(n=pods))
        rates.append(ring_rate_gb_per_s(topology).expected)
        steps.append(
            step_time(
                Work(
                    architecture=model.config.architecture,
                    recipe=recipe,
                    topology=topology,
                    sequence_length=512,
                    feed="lines",
                )
            ).step_s.expected
        )
    assert rates == sorted(rates)
    assert steps == sorted(steps, reverse=True)


@given(st.integers(1, 2000))
def test_a_dialled_rate_is_the_rate_of_the_ring(mbit):
    rate = ring_rate_gb_per_s(parse_topology(f"cpu-2x1-tcp-{mbit}mbit"))
    assert rate.low < rate.expected < rate.high == pytest.approx(mbit / 8000)


@given(works())
def test_padding_is_no_throughput(work):
    padded, packed = replace(work, feed="lines"), replace(work, feed="packed")
    assert padded.real_tokens_per_step <= padded.slots_per_step <= packed.slots_per_step
    assert packed.real_tokens_per_step == packed.slots_per_step


@given(works())
def test_recomputation_costs_a_third_more_compute(work):
    kept, again = (
        replace(work, recipe=work.recipe.model_copy(update={"activation_checkpointing": on})) for on in (False, True)
    )
    hooks = 0.009 * work.architecture.layers if work.recipe.zero.stage == 3 else 0.009
    passes = work.recipe.accumulation
    matmul = [step_time(w).compute_s.expected / passes - hooks for w in (kept, again)]
    assert matmul[1] == pytest.approx(4 / 3 * matmul[0], rel=1e-6)


def test_one_pod_sends_nothing():
    work = Work(
        architecture=TINY.config.architecture,
        recipe=seed_recipe("seed-p4d", TINY.config.architecture),
        topology=parse_topology("cpu-1x2-local"),
        sequence_length=128,
        feed="packed",
    )
    assert traffic(work).pod_sent_bytes == 0
    assert traffic(work).collective_bytes_per_rank > 0


@pytest.mark.parametrize(
    ("reuse", "recompute", "gathers"),
    [(10**9, False, 1.88), (3 * 10**9, False, 1.63), (2 * 10**10, False, 1.0), (10**8, True, 2.33)],
)
def test_gathers_agree_with_the_counted_collectives(reuse, recompute, gathers):
    architecture = LLAMA_3_8B.config.architecture
    seed = seed_recipe("seed-p4d", architecture)
    zero = seed.zero.model_copy(update={"max_reuse_distance": reuse, "max_live_parameters": reuse})
    recipe = seed.model_copy(update={"zero": zero, "activation_checkpointing": recompute})
    assert gathers_per_micro_batch(architecture, recipe) == pytest.approx(gathers, abs=0.03)


@given(
    st.sampled_from(["g6e12xl-{n}x4-efa1", "p4d24xl-{n}x1-tcp", "p4d24xl-{n}x2-efa2", "cpu-{n}x3-tcp"]),
    st.integers(2, 12),
)
def test_the_link_classes_divide_all_pairs(form, pods):
    topology = parse_topology(form.format(n=pods))
    pairs = pairs_by_class(topology)
    ranks = range(topology.ranks)
    counted = dict.fromkeys(pairs, 0)
    for a in ranks:
        for b in range(a):
            pod_a, pod_b = a // topology.gpus_per_pod, b // topology.gpus_per_pod
            node_a, node_b = pod_a // topology.pods_per_node, pod_b // topology.pods_per_node
            link: LinkClass = "same-pod" if pod_a == pod_b else "same-node" if node_a == node_b else "other-node"
            counted[link] += 1
    assert pairs == counted
