"""Parameter counts and FLOPs of a Llama-family decoder; prediction and measurement both come here.

Convention: Chowdhery et al. 2022 (PaLM), appendix B: 6 FLOPs a matmul parameter and token for forward and
backward, plus attention scores with causality ignored. Grouped-query attention shrinks the projections but
not the scores, which depend on the query heads.
"""

from trainer.config import Architecture


def parameters(a: Architecture) -> int:
    """All trainable parameters; tied embeddings count once."""
    embeddings = a.vocabulary_size * a.hidden_size
    head = 0 if a.tied_embeddings else embeddings
    return embeddings + head + a.layers * layer_parameters(a) + a.hidden_size


def layer_parameters(a: Architecture) -> int:
    """One decoder layer: attention projections, gated MLP and two RMSNorms."""
    query_and_output = 2 * a.hidden_size * a.attention_heads * a.head_dim
    key_and_value = 2 * a.hidden_size * a.key_value_heads * a.head_dim
    mlp = 3 * a.hidden_size * a.intermediate_size
    return query_and_output + key_and_value + mlp + 2 * a.hidden_size


def matmul_parameters(a: Architecture) -> int:
    """Parameters that multiply each token: all but the embedding look-up; a tied head still multiplies."""
    lookup = 0 if a.tied_embeddings else a.vocabulary_size * a.hidden_size
    return parameters(a) - lookup


def flops_per_token(a: Architecture, attended_tokens: float) -> float:
    """Model FLOPs of one trained token that attends to `attended_tokens` (the sequence length when packed).

    6 N + 12 L (heads x head_dim) T: PaLM convention.
    """
    attention_width = a.attention_heads * a.head_dim
    return 6.0 * matmul_parameters(a) + 12.0 * a.layers * attention_width * attended_tokens


def mfu(flops_per_s_per_gpu: float, peak_flops_per_s: float | None) -> float | None:
    """Model FLOPs utilisation against the dense bf16 peak; None where the peak is unknown."""
    return None if peak_flops_per_s is None else flops_per_s_per_gpu / peak_flops_per_s
