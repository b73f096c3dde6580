"""A Llama-family decoder, passed through forward and backward by hand.

Why not autograd: the weight gradients are added by the matrix product itself (beta = 1), the norms and SwiGLU's
product are made again in passing instead of kept, and each layer says when its gradients are whole, so that
their reduction can start. Every product of a layer is one call: query, key and value together, gate and up too.

Shapes: B sequences of T tokens, M = B T; h hidden size, f intermediate size, d head's size, V words.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.attention import Attended, Kernel, attend
from trainer.decoder_ops import Ops, rotary

HEAD_TOKENS = 4096
"""Tokens whose logits exist at once: 1 GB in bf16 at 128,256 words, and still a large product."""


@dataclass(frozen=True, kw_only=True)
class LayerWeights:
    """One decoder layer's weights, or their gradients: views of one flat tensor."""

    qkv: Tensor
    """[(heads + 2 key_value_heads) d, h]"""
    out: Tensor
    """[h, heads d]"""
    gate_up: Tensor
    """[2 f, h]"""
    down: Tensor
    """[h, f]"""
    attention_norm: Tensor
    mlp_norm: Tensor


@dataclass(frozen=True, kw_only=True)
class Weights:
    """A whole decoder's weights, or their gradients; `head` is `embedding` where they are tied."""

    embedding: Tensor
    layers: tuple[LayerWeights, ...]
    norm: Tensor
    head: Tensor

    @property
    def tied(self) -> bool:
        """Whether head and embedding are one tensor."""
        return self.head is self.embedding


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What the passes must know beside the weights."""

    heads: int
    key_value_heads: int
    head_dim: int
    rope_theta: float
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class Kernels:
    """What computes, besides the matrix products, and in words what it is: for the record."""

    ops: Ops
    attention: Kernel
    chosen: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Whom to tell of buckets: 0 the embedding, 1 to L the layers, L + 1 the final norm and the head."""

    before_read: Callable[[int], None]
    """Called before a forward pass first reads a bucket's weights."""
    after_added: Callable[[int], None]
    """Called once a backward pass has added all of a bucket's gradients."""


@dataclass(frozen=True, kw_only=True)
class _Pass:
    """What all layers of one pass share."""

    batch: torch.Size
    cos: Tensor
    sin: Tensor
    beta: float
    """0: gradients are overwritten; 1: added to."""


@dataclass(frozen=True, kw_only=True)
class _Middle:
    """What a layer's backward pass needs, and can be made again from the layer's entry."""

    attended: Attended
    stream: Tensor
    """The residual stream between attention and MLP [M, h]."""
    gate_up: Tensor

    @property
    def heads(self) -> Tensor:
        """Attention's output [M, heads d]."""
        return self.attended.out.flatten(2).flatten(0, 1)


class Decoder:
    """Forward and backward passes over given weights; gradients go to given tensors of the same shapes.

    `recompute`: keep only each layer's entry, and pass through the layer again in the backward pass.
    """

    def __init__(
        self, shape: Shape, weights: Weights, gradients: Weights, kernels: Kernels, *, recompute: bool
    ) -> None:
        self._shape, self._weights, self._gradients = shape, weights, gradients
        self._ops, self._attention, self._recompute = kernels.ops, kernels.attention, recompute

    def learn(self, ids: Tensor, targets: Tensor, scale: Tensor, watch: Watch, *, first: bool) -> Tensor:
        """One micro-batch: its summed loss times scale, both scalars; its gradients added, or set where `first`.

        ids and targets [B, T]; targets are what each position is to predict, decoder_ops.IGNORED where nothing.
        """
        with torch.no_grad():
            return self._learn(ids, targets, scale, watch, first)

    def _learn(self, ids: Tensor, targets: Tensor, scale: Tensor, watch: Watch, first: bool) -> Tensor:
        cos, sin = rotary(ids.shape[1], self._shape.head_dim, self._shape.rope_theta, ids.device)
        this = _Pass(batch=ids.shape, cos=cos, sin=sin, beta=0.0 if first else 1.0)
        entries, middles, stream, delta = self._layers(ids, this, watch)
        watch.before_read(len(entries) + 1)
        loss, d = self._head(stream, delta, targets.reshape(-1), scale, this.beta)
        watch.after_added(len(entries) + 1)
        del stream, delta
        for i in reversed(range(len(entries))):
            d = self._layer_backward(i, entries.pop(), middles.pop(), d, this)
            watch.after_added(i + 1)
        self._embedding_backward(ids.reshape(-1), d, this.beta)
        watch.after_added(0)
        return loss

    def _layers(
        self, ids: Tensor, this: _Pass, watch: Watch
    ) -> tuple[list[Tensor], list[_Middle | None], Tensor, Tensor]:
        """Each layer's entry and what is kept of it; the residual stream and what is still to be added to it."""
        entries: list[Tensor] = []
        middles: list[_Middle | None] = []
        watch.before_read(0)
        stream = self._weights.embedding[ids.reshape(-1)]
        delta: Tensor | None = None
        for i, layer in enumerate(self._weights.layers):
            watch.before_read(i + 1)
            stream, normed = self._entered(layer, stream, delta)
            entries.append(stream)
            middle, delta = self._through(layer, stream, normed, this)
            stream = middle.stream
            middles.append(None if self._recompute else middle)
        assert delta is not None, "a decoder has layers"
        return entries, middles, stream, delta

    def _entered(self, w: LayerWeights, stream: Tensor, delta: Tensor | None) -> tuple[Tensor, Tensor]:
        if delta is None:
            return stream, self._ops.norm(stream, w.attention_norm, self._shape.epsilon)
        return self._ops.add_norm(stream, delta, w.attention_norm, self._shape.epsilon)

    def _through(self, w: LayerWeights, entry: Tensor, normed: Tensor, this: _Pass) -> tuple[_Middle, Tensor]:
        middle = self._middle(w, entry, normed, this)
        return middle, self._ops.swiglu(middle.gate_up) @ w.down.t()

    def _middle(self, w: LayerWeights, entry: Tensor, normed: Tensor, this: _Pass) -> _Middle:
        s = self._shape
        qkv = (normed @ w.qkv.t()).view(*this.batch, -1, s.head_dim)
        turned = self._ops.rotate(qkv, this.cos, this.sin, s.heads, s.key_value_heads)
        q, k, v = turned.split([s.heads, s.key_value_heads, s.key_value_heads], dim=2)
        attended = attend(self._attention, q, k, v)
        heads = attended.out.flatten(2).flatten(0, 1)
        stream, normed = self._ops.add_norm(entry, heads @ w.out.t(), w.mlp_norm, s.epsilon)
        return _Middle(attended=attended, stream=stream, gate_up=normed @ w.gate_up.t())

    def _layer_backward(self, i: int, entry: Tensor, kept: _Middle | None, d: Tensor, this: _Pass) -> Tensor:
        w, g = self._weights.layers[i], self._gradients.layers[i]
        normed = self._ops.norm(entry, w.attention_norm, self._shape.epsilon) if kept is None else None
        middle = self._middle(w, entry, normed, this) if normed is not None else kept
        assert middle is not None, "made again or kept"
        d = self._mlp_backward(w, g, middle, d, this.beta)
        return self._attention_backward(w, g, entry, middle, d, this)

    def _mlp_backward(self, w: LayerWeights, g: LayerWeights, middle: _Middle, d: Tensor, beta: float) -> Tensor:
        d_gate_up, product = self._ops.swiglu_backward(middle.gate_up, d @ w.down)
        g.down.addmm_(d.t(), product, beta=beta)
        del product
        back = d_gate_up @ w.gate_up
        d, normed, d_norm = self._ops.norm_backward(middle.stream, w.mlp_norm, self._shape.epsilon, back, d)
        _add(g.mlp_norm, d_norm, beta)
        g.gate_up.addmm_(d_gate_up.t(), normed, beta=beta)
        return d

    def _attention_backward(
        self, w: LayerWeights, g: LayerWeights, entry: Tensor, middle: _Middle, d: Tensor, this: _Pass
    ) -> Tensor:
        attended = middle.attended
        d_heads = (d @ w.out).view(attended.out.shape)
        g.out.addmm_(d.t(), middle.heads, beta=this.beta)
        d_qkv = self._ops.rotate_backward(*attended.backward(d_heads), this.cos, this.sin).flatten(2).flatten(0, 1)
        back = d_qkv @ w.qkv
        d, normed, d_norm = self._ops.norm_backward(entry, w.attention_norm, self._shape.epsilon, back, d)
        _add(g.attention_norm, d_norm, this.beta)
        g.qkv.addmm_(d_qkv.t(), normed, beta=this.beta)
        return d

    def _head(
        self, stream: Tensor, delta: Tensor, targets: Tensor, scale: Tensor, beta: float
    ) -> tuple[Tensor, Tensor]:
        """The loss, and the gradient of the residual stream; logits and their gradients live a part at a time."""
        w, g, epsilon = self._weights, self._gradients, self._shape.epsilon
        stream, normed = self._ops.add_norm(stream, delta, w.norm, epsilon)
        d_normed, losses = torch.empty_like(normed), []
        for part in _parts(len(targets)):
            loss, d_logits = self._ops.cross_entropy(normed[part] @ w.head.t(), targets[part], scale)
            losses.append(loss)
            torch.mm(d_logits, w.head, out=d_normed[part])
            g.head.addmm_(d_logits.t(), normed[part], beta=1.0 if part.start else beta)
        d, _, d_norm = self._ops.norm_backward(stream, w.norm, epsilon, d_normed, stream.new_zeros(()))
        _add(g.norm, d_norm, beta)
        return torch.stack(losses).sum(), d

    def _embedding_backward(self, ids: Tensor, d: Tensor, beta: float) -> None:
        words = len(self._weights.embedding)
        gradient = torch.ops.aten.embedding_dense_backward(d, ids, words, -1, False)
        # A tied head has been here already.
        _add(self._gradients.embedding, gradient, 1.0 if self._weights.tied else beta)


def _parts(tokens: int) -> Sequence[slice]:
    return [slice(first, min(tokens, first + HEAD_TOKENS)) for first in range(0, tokens, HEAD_TOKENS)]


def _add(gradient: Tensor, more: Tensor, beta: float) -> None:
    if beta == 0.0:
        gradient.copy_(more)
    else:
        gradient.add_(more)
