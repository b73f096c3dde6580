"""A decoder's weights in flat tensors, one a bucket: what one collective carries.

Bucket 0 is the embedding, 1 to L are the layers, L + 1 the final norm and the head (the norm alone where the head
is tied to the embedding). Inside a bucket the tensors lie in transformers' order, so that query, key and value are
one matrix, gate and up another, and every tensor of transformers is a view. A bucket's end is padded such that
all ranks' shards are of one length.
"""

from collections.abc import Iterable, Sequence
from math import prod

import torch
from torch import Tensor

from trainer.config import Architecture
from trainer.decoder import LayerWeights, Weights

Slots = tuple[tuple[str, tuple[int, ...]], ...]
"""Names as in transformers' state dict, and shapes."""

_ALIGNMENT = 128
"""Elements that a shard's length is a multiple of: NCCL's and the matrix products' reads stay aligned."""


def layout(a: Architecture) -> tuple[Slots, ...]:
    """The tensors of each bucket."""
    h, words = a.hidden_size, ("model.embed_tokens.weight", (a.vocabulary_size, a.hidden_size))
    last: Slots = (("model.norm.weight", (h,)),)
    if not a.tied_embeddings:
        # The matrix first: its start is aligned then.
        last = (("lm_head.weight", (a.vocabulary_size, h)), *last)
    return ((words,), *(_layer(a, f"model.layers.{i}.") for i in range(a.layers)), last)


def _layer(a: Architecture, prefix: str) -> Slots:
    h, f, q, kv = a.hidden_size, a.intermediate_size, a.attention_heads * a.head_dim, a.key_value_heads * a.head_dim
    names: Slots = (
        ("self_attn.q_proj", (q, h)),
        ("self_attn.k_proj", (kv, h)),
        ("self_attn.v_proj", (kv, h)),
        ("self_attn.o_proj", (h, q)),
        ("mlp.gate_proj", (f, h)),
        ("mlp.up_proj", (f, h)),
        ("mlp.down_proj", (h, f)),
        ("input_layernorm", (h,)),
        ("post_attention_layernorm", (h,)),
    )
    return tuple((f"{prefix}{name}.weight", shape) for name, shape in names)


def length(slots: Slots, ranks: int) -> int:
    """Elements of a bucket, its padding included."""
    step = ranks * _ALIGNMENT
    return -(-sum(prod(shape) for _, shape in slots) // step) * step


def make_flat(a: Architecture, ranks: int, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Zeroed buckets."""
    return tuple(torch.zeros(length(slots, ranks), device=device, dtype=dtype) for slots in layout(a))


def named_views(a: Architecture, flat: Sequence[Tensor]) -> dict[str, Tensor]:
    """Each tensor of transformers' state dict (a tied head is left out), as a view."""
    found = {}
    for slots, bucket in zip(layout(a), flat, strict=True):
        start = 0
        for name, shape in slots:
            found[name] = bucket[start : start + prod(shape)].view(shape)
            start += prod(shape)
    return found


def weights_of(a: Architecture, flat: Sequence[Tensor]) -> Weights:
    """The buckets as the decoder takes them."""
    named = named_views(a, flat)
    embedding = named["model.embed_tokens.weight"]
    return Weights(
        embedding=embedding,
        layers=tuple(_layer_weights(a, bucket) for bucket in flat[1:-1]),
        norm=named["model.norm.weight"],
        head=embedding if a.tied_embeddings else named["lm_head.weight"],
    )


def _layer_weights(a: Architecture, bucket: Tensor) -> LayerWeights:
    h, f, q, kv = a.hidden_size, a.intermediate_size, a.attention_heads * a.head_dim, a.key_value_heads * a.head_dim
    shapes = ((q + 2 * kv, h), (h, q), (2 * f, h), (h, f), (h,), (h,))
    qkv, out, gate_up, down, attention_norm, mlp_norm = _views(bucket, shapes)
    return LayerWeights(qkv=qkv, out=out, gate_up=gate_up, down=down, attention_norm=attention_norm, mlp_norm=mlp_norm)


def _views(flat: Tensor, shapes: Iterable[tuple[int, ...]]) -> list[Tensor]:
    found, start = [], 0
    for shape in shapes:
        found.append(flat[start : start + prod(shape)].view(shape))
        start += prod(shape)
    return found
