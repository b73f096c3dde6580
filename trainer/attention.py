"""Causal attention by the fastest kernel at hand, as a pair of functions: forward, and its derivative.

Each kernel is somebody's differentiable function; its own tape is kept between the two calls.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

Kernel = Callable[[Tensor, Tensor, Tensor], Tensor]
"""q [B, T, heads, d], k and v [B, T, key_value_heads, d] to [B, T, heads, d], causal."""


@dataclass(frozen=True)
class Attended:
    """What attention made, and what its derivative needs."""

    out: Tensor
    """[B, T, heads, d], detached."""
    tape: tuple[Tensor, ...]
    """Output, q, k and v of the kernel's own graph."""

    def backward(self, d_out: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of q, k and v; once only, the tape is spent."""
        out, *inputs = self.tape
        dq, dk, dv = torch.autograd.grad(out, inputs, d_out)
        return dq, dk, dv


def attend(kernel: Kernel, q: Tensor, k: Tensor, v: Tensor) -> Attended:
    """Run a kernel and keep its tape."""
    inputs = [x.detach().requires_grad_() for x in (q, k, v)]
    with torch.enable_grad():
        out = kernel(*inputs)
    return Attended(out=out.detach(), tape=(out, *inputs))


def torch_kernel(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """torch's scaled_dot_product_attention: cuDNN first where it can, else what torch picks."""
    heads = (x.transpose(1, 2) for x in (q, k, v))
    order = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    with sdpa_kernel(order, set_priority=True):
        out: Tensor = scaled_dot_product_attention(*heads, is_causal=True, enable_gqa=True)
    return out.transpose(1, 2)
