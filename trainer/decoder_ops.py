"""The elementwise parts of a Llama-family decoder and their derivatives, each one pass over memory.

Written as plain torch and compiled where a GPU is (torch.compile fuses each function into a kernel or two), so
that a CPU runs, and tests, the same formulas. Sums are taken in float32 whatever the tensors' type. Shapes: M
tokens (sequences x length), h the hidden size.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

IGNORED = -100
"""A target of this value takes no part in the loss (torch's own convention)."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


def fused(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, compiled at its first call with tensors on a GPU."""

    @lru_cache(maxsize=1)
    def compiled() -> Callable[_P, _R]:
        made: Callable[_P, _R] = torch.compile(function, fullgraph=True)
        return made

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        on_gpu = isinstance(args[0], Tensor) and args[0].is_cuda
        return (compiled() if on_gpu else function)(*args, **kwargs)

    return call


@fused
def norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """RMSNorm of x [M, h] with weight [h] (Zhang and Sennrich 2019)."""
    return _normed(x, weight, epsilon)


@fused
def add_norm(x: Tensor, delta: Tensor, weight: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """x + delta and its RMSNorm, both [M, h]: the residual stream is read once."""
    total = x + delta
    return total, _normed(total, weight, epsilon)


@fused
def norm_backward(
    x: Tensor, weight: Tensor, epsilon: float, d_normed: Tensor, d_x: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """d_x plus what comes back through the norm; the norm itself, made again; the weight's gradient [h], float32.

    The norm is not kept from the forward pass: here x is read anyway. d_x is [M, h], or a zero without dimensions.
    """
    wide, w, dy = x.float(), weight.float(), d_normed.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
    unit = wide * scale
    dy_w = dy * w
    back = scale * (dy_w - unit * (dy_w * unit).mean(-1, keepdim=True))
    return (d_x.float() + back).to(x.dtype), (unit * w).to(x.dtype), (dy * unit).sum(0)


@fused
def rotate(qkv: Tensor, cos: Tensor, sin: Tensor, heads: int, key_value_heads: int) -> Tensor:
    """Rotary positions (Su et al. 2021, halves as in transformers) on the query and key heads.

    qkv [B, T, heads + 2 key_value_heads, d], which is spent; cos and sin [T, d / 2] in float32.
    """
    turned = heads + key_value_heads
    qk, v = qkv[:, :, :turned], qkv[:, :, turned:]
    return torch.cat([_turned(qk, cos, sin), v], dim=2)


@fused
def rotate_backward(dq: Tensor, dk: Tensor, dv: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The gradient of qkv before the rotation [B, T, heads + 2 key_value_heads, d]: the inverse rotation."""
    return torch.cat([_turned(dq, cos, -sin), _turned(dk, cos, -sin), dv], dim=2)


@fused
def swiglu(gate_up: Tensor) -> Tensor:
    """silu(gate) x up (Shazeer 2020); gate_up [M, 2 f] holds gate, then up; the result is [M, f]."""
    gate, up = gate_up.chunk(2, dim=-1)
    return _silu_times(gate.float(), up.float()).to(gate_up.dtype)


@fused
def swiglu_backward(gate_up: Tensor, d_product: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of gate_up [M, 2 f], and the product again [M, f], which the forward pass doesn't keep.

    The arguments are spent: a kernel may write its results over them.
    """
    gate, up = (half.float() for half in gate_up.chunk(2, dim=-1))
    d = d_product.float()
    sigmoid = torch.sigmoid(gate)
    silu = gate * sigmoid
    d_gate = d * up * (sigmoid + silu * (1.0 - sigmoid))
    return torch.cat([d_gate, d * silu], dim=-1).to(gate_up.dtype), (silu * up).to(gate_up.dtype)


@fused
def cross_entropy(logits: Tensor, targets: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Summed loss over targets [M] that aren't IGNORED, times scale []; and its gradient by logits [M, V].

    scale is a tensor, because a number that changes would be compiled anew.
    """
    wide = logits.float()
    peak = wide.amax(-1, keepdim=True)
    log_sum = (wide - peak).exp().sum(-1, keepdim=True).log() + peak
    counts = (targets != IGNORED).float().unsqueeze(-1) * scale
    hit = torch.arange(logits.shape[-1], device=logits.device) == targets.unsqueeze(-1)
    own = torch.where(hit, wide, 0.0).sum(-1, keepdim=True)
    gradient = ((wide - log_sum).exp() - hit.float()) * counts
    return ((log_sum - own) * counts).sum(), gradient.to(logits.dtype)


@dataclass(frozen=True, kw_only=True)
class Ops:
    """What a decoder is made of, besides matrix products and attention; each as the function of its name here."""

    norm: Callable[[Tensor, Tensor, float], Tensor] = norm
    add_norm: Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]] = add_norm
    norm_backward: Callable[[Tensor, Tensor, float, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]] = norm_backward
    rotate: Callable[[Tensor, Tensor, Tensor, int, int], Tensor] = rotate
    rotate_backward: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor] = rotate_backward
    swiglu: Callable[[Tensor], Tensor] = swiglu
    swiglu_backward: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = swiglu_backward
    cross_entropy: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]] = cross_entropy


def rotary(length: int, head_dim: int, theta: float, device: torch.device) -> tuple[Tensor, Tensor]:
    """cos and sin [T, d / 2] of positions 0 to T - 1, float32."""
    frequencies = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float32, device=device) / head_dim)
    angles = torch.outer(torch.arange(length, dtype=torch.float32, device=device), frequencies)
    return angles.cos(), angles.sin()


def _normed(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
    return (wide * scale * weight.float()).to(x.dtype)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = (half.float() for half in x.chunk(2, dim=-1))
    c, s = cos[None, :, None, :], sin[None, :, None, :]
    return torch.cat([first * c - second * s, second * c + first * s], dim=-1).to(x.dtype)


def _silu_times(gate: Tensor, up: Tensor) -> Tensor:
    return gate * torch.sigmoid(gate) * up
