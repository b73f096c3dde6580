"""Bytes of one optimizer step, by stage and backend.

S is one bf16 copy of the parameters, f = (N-1)/N of N ranks. A ring sends S f per rank for an all-gather or a
reduce-scatter and 2 S f for an all-reduce, and crosses each pod's edge once, so what leaves a pod is what one
rank sends.

    ZeRO-3, NCCL   accumulation x (a + 1) S f
    ZeRO-3, gloo   accumulation x (a + 2) S f     gloo's reduce-scatter sends an all-reduce's bytes
    ZeRO-2         accumulation x 2 S f + S f     DeepSpeed all-reduces its buckets
    ZeRO-1         2 S f + S f                    as ZeRO-2, once a step
    direct, NCCL   S f + S f                      each bucket reduce-scattered and gathered once a step
    direct, gloo   2 S f + S f

a is the number of times that a parameter is gathered in one micro-batch: 2 - reuse distance / parameters, at
least 1 (everything kept); 2.33 where blocks are recomputed and a block exceeds the reuse distance.
"""

from trainer.config import Architecture, RecipeConfig
from trainer.contract import Backend
from trainer.flops import layer_parameters, parameters
from workloads.planning.prediction import Source, TrafficPrediction
from workloads.planning.work import Work

SOURCE = (
    "collectives counted in DeepSpeed 0.19.8 over a 32-layer Llama (a = 1.88 at reuse 1e9, 1.63 at 3e9, 1.0 "
    "at 2e10, 2.33 at 1e8 with recomputation); gloo counted by the interface"
)


def gathers_per_micro_batch(a: Architecture, recipe: RecipeConfig) -> float:
    """How often ZeRO-3 gathers a parameter in one forward and backward pass."""
    reuse = min(recipe.zero.max_reuse_distance, recipe.zero.max_live_parameters)
    if recipe.activation_checkpointing and reuse < layer_parameters(a):
        return 2.33
    return max(1.0, 2.0 - reuse / parameters(a))


def traffic(work: Work) -> TrafficPrediction:
    """Bytes that one rank and one pod send in one optimizer step."""
    ranks = work.topology.ranks
    per_copy = 2.0 * parameters(work.architecture) * (ranks - 1) / ranks
    gathers = gathers_per_micro_batch(work.architecture, work.recipe)
    copies, formula = _copies(gathers, work.recipe, work.backend)
    sent = copies * per_copy
    return TrafficPrediction(
        collective_bytes_per_rank=sent,
        pod_sent_bytes=sent if work.topology.pods > 1 else 0.0,
        explained=Source(formula=formula, source=SOURCE),
    )


def _copies(gathers: float, recipe: RecipeConfig, backend: Backend) -> tuple[float, str]:
    accumulation = recipe.accumulation
    scatter = 2.0 if backend == "gloo" else 1.0
    if recipe.engine == "direct":
        text = f"{scatter + 1.0:.0f} S f per step (reduce-scatter of gradients, all-gather of parameters; {backend})"
        return scatter + 1.0, text
    if recipe.zero.stage == 1:
        return 3.0, "3 S f per step (all-reduce of gradients, all-gather of parameters)"
    if recipe.zero.stage == 2:
        return 2.0 * accumulation + 1.0, f"({accumulation} x 2 + 1) S f"
    text = f"{accumulation} x ({gathers:.2f} + {scatter:.0f}) S f ({backend})"
    return accumulation * (gathers + scatter), text
