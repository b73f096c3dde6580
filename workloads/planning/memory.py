"""Memory per rank and per pod, in GiB of 2^30 bytes.

ZeRO arithmetic (bf16 weights and gradients, fp32 master weights and two Adam moments): ZeRO-3 16 P/N bytes,
ZeRO-2 2 P + 14 P/N, ZeRO-1 4 P + 12 P/N. Offloaded states live in the pod's host memory.
"""

from trainer.config import Architecture, RecipeConfig
from trainer.flops import layer_parameters, parameters
from workloads.catalogue.machines import Machine
from workloads.planning.prediction import MemoryPrediction, Range, Source
from workloads.planning.work import Work

GIB = 2**30
SAFETY = 1.08
"""A recipe is chosen only where expected memory x 1.08 fits: the allocator's fragmentation."""
_HEAD_TOKENS = 4096
"""Tokens whose logits exist at once in trainer.decoder (HEAD_TOKENS there; that module needs torch)."""
CPU_RANK_LIMIT_GIB = 3.0
"""What a lab rank on a CPU may take: two of them fit a small laptop."""


def memory(work: Work) -> MemoryPrediction:
    """Predicted memory of one rank and host memory of one pod."""
    a, recipe, machine = work.architecture, work.recipe, work.topology.machine
    ranks = work.topology.ranks
    states = _state_bytes(a, recipe, ranks) / GIB
    working = _working_gib(a, recipe, machine, work.sequence_length)
    return MemoryPrediction(
        states_gib=states,
        working_gib=working,
        per_rank_gib=Range(low=states + working.low, expected=states + working.expected, high=states + working.high),
        limit_gib=CPU_RANK_LIMIT_GIB if machine.gpu is None else machine.gpu.memory_mib / 1024,
        host_per_pod_gib=_host_gib(a, recipe, machine, ranks).scaled(work.topology.gpus_per_pod),
        explained=Source(
            formula=_formula(recipe),
            source="ZeRO arithmetic; activations (24 h + 8 ffn) L bytes a token, 2 h L and one block when "
            "recomputed; logits 12 V bytes a token; runtime 1.8 GiB a GPU"
            if recipe.engine == "deepspeed"
            else "what trainer.decoder keeps: (8 h + 4 kv + 4 ffn) L bytes a token, 2 h L and one block when "
            "recomputed; logits and their gradient of 4096 tokens; runtime 1.8 GiB a GPU",
        ),
    )


def fits(prediction: MemoryPrediction) -> bool:
    """True where the expected need leaves the allocator its margin."""
    return prediction.limit_gib is None or prediction.per_rank_gib.expected * SAFETY <= prediction.limit_gib


def _formula(recipe: RecipeConfig) -> str:
    if recipe.zero.offload_optimizer:
        return (
            "2 P/N on the GPU, 12 to 18 P/N in host memory"
            if not recipe.zero.offload_parameters
            else ("gathered parameters on the GPU, 14 to 20 P/N in host memory")
        )
    return {1: "4 P + 12 P/N", 2: "2 P + 14 P/N", 3: "16 P/N"}[recipe.zero.stage]


def _state_bytes(a: Architecture, recipe: RecipeConfig, ranks: int) -> float:
    p = float(parameters(a))
    if recipe.zero.offload_parameters:
        return 0.0
    if recipe.zero.offload_optimizer:
        return 4.0 * p / ranks  # weights and the gradients on their way out
    return {1: 4.0 * p + 12.0 * p / ranks, 2: 2.0 * p + 14.0 * p / ranks, 3: 16.0 * p / ranks}[recipe.zero.stage]


def _working_gib(a: Architecture, recipe: RecipeConfig, machine: Machine, sequence_length: int) -> Range:
    tokens = recipe.micro_batch * sequence_length
    if recipe.engine == "direct":
        return _direct_working_gib(a, recipe, machine, tokens)
    gathered = _gathered_bytes(a, recipe)
    buckets = 4.0 * recipe.zero.reduce_bucket_size
    logits = 12.0 * a.vocabulary_size * tokens
    activations = _activation_bytes_per_token(a, recipe) * tokens
    runtime = _runtime_gib(machine)
    return Range(
        low=(0.7 * gathered + buckets + 0.6 * activations + 0.6 * logits) / GIB + runtime[0],
        expected=(gathered + buckets + activations + logits) / GIB + runtime[1],
        high=(1.2 * gathered + 2 * buckets + 1.2 * activations + 1.2 * logits) / GIB + runtime[2],
    )


def _runtime_gib(machine: Machine) -> tuple[float, float, float]:
    """Context, NCCL and workspace of a GPU; interpreter and libraries of a CPU rank (0.7 to 1.1 measured)."""
    return (1.2, 1.8, 3.0) if machine.gpu is not None else (0.6, 0.9, 1.4)


def _direct_working_gib(a: Architecture, recipe: RecipeConfig, machine: Machine, tokens: int) -> Range:
    """What trainer.decoder's passes hold at their peak, the head's forward and backward pass.

    79.5 GiB allocated at the peak without optimizer states, 78.4 by this (one H200, Llama-3-8B, 2 x 8192).
    """
    queries, pairs = a.attention_heads * a.head_dim, 2 * a.key_value_heads * a.head_dim
    # Two places of the residual stream, query, key, value, attention's output and its sums, gate and up.
    layer = 2.0 * (2 * a.hidden_size + 2 * queries + pairs + 2 * a.intermediate_size) + 4.0 * a.attention_heads
    kept = 2.0 * a.hidden_size * a.layers + layer if recipe.activation_checkpointing else layer * a.layers
    head = 2 * 2.0 * a.vocabulary_size * min(tokens, _HEAD_TOKENS)
    peak = kept * tokens + head + 4 * 2.0 * a.hidden_size * tokens
    low, expected, high = _runtime_gib(machine)
    return Range(low=0.95 * peak / GIB + low, expected=peak / GIB + expected, high=1.08 * peak / GIB + high)


def _gathered_bytes(a: Architecture, recipe: RecipeConfig) -> float:
    if recipe.zero.stage != 3:
        return 0.0
    embeddings = 2.0 * a.vocabulary_size * a.hidden_size
    live = 2.0 * min(recipe.zero.max_live_parameters, parameters(a))
    return max(live, 2.0 * layer_parameters(a)) + 2.0 * embeddings


def _activation_bytes_per_token(a: Architecture, recipe: RecipeConfig) -> float:
    block = 24.0 * a.hidden_size + 8.0 * a.intermediate_size
    if recipe.activation_checkpointing:
        return 2.0 * a.hidden_size * a.layers + 1.5 * block
    return block * a.layers


def _host_gib(a: Architecture, recipe: RecipeConfig, machine: Machine, ranks: int) -> Range:
    """Host memory of one rank on a GPU machine; a CPU rank's memory is all in `per_rank_gib`."""
    if machine.gpu is None:
        return Range(low=0.0, expected=0.0, high=0.0)
    shard = parameters(a) / ranks / GIB
    states = (0.0, 0.0, 0.0)
    if recipe.zero.offload_optimizer:
        weights = 2.0 if recipe.zero.offload_parameters else 0.0
        states = (12.0 + weights, 14.0 + weights, 18.0 + weights)
    # A process with torch, its libraries and pinned staging buffers.
    process = (2.0, 4.0, 8.0)
    low, expected, high = (p + s * shard for p, s in zip(process, states, strict=True))
    return Range(low=low, expected=expected, high=high)
