"""The decoder's elementwise parts as Triton kernels, where the compiler's own would pass over memory twice.

Each does what the function of the same name in trainer.decoder_ops does. Together they take 43 ms of a micro-batch of
2 x 8192 tokens of Llama-3-8B on an H200, what torch.compile makes of decoder_ops takes 77 (docs/diary, 2026-11-21).
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from trainer.decoder_ops import Ops

NORM_PROGRAMS, NORM_WARPS = 2, 16
"""Programs a multiprocessor, each going through its rows, and warps a program."""


def norm_backward(
    x: Tensor, weight: Tensor, epsilon: float, d_normed: Tensor, d_x: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """As decoder_ops.norm_backward, the weight's gradient summed on the way."""
    rows, width = x.shape
    programs = min(rows, NORM_PROGRAMS * torch.cuda.get_device_properties(x.device).multi_processor_count)
    back, normed = torch.empty_like(x), torch.empty_like(x)
    partial = torch.empty((programs, width), device=x.device, dtype=torch.float32)
    _norm_backward[(programs,)](
        x, weight, d_normed, d_x, back, normed, partial, rows, epsilon,
        width=width, block=triton.next_power_of_2(width), adds=d_x.dim() > 0, num_warps=NORM_WARPS,
    )  # fmt: skip
    return back, normed, partial.sum(0)


def swiglu_backward(gate_up: Tensor, d_product: Tensor) -> tuple[Tensor, Tensor]:
    """As decoder_ops.swiglu_backward; both results overwrite the arguments."""
    rows, width = d_product.shape
    block = 1024
    _swiglu_backward[(rows, triton.cdiv(width, block))](gate_up, d_product, width=width, block=block, num_warps=4)
    return gate_up, d_product


def rotate(qkv: Tensor, cos: Tensor, sin: Tensor, heads: int, key_value_heads: int) -> Tensor:
    """As decoder_ops.rotate, in place."""
    batch, length, all_heads, d = qkv.shape
    _rotate[(batch * length,)](
        qkv, cos, sin, length, heads + key_value_heads, all_heads * d, half=d // 2, at_once=8, num_warps=4
    )
    return qkv


def rotate_backward(dq: Tensor, dk: Tensor, dv: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """As decoder_ops.rotate_backward; reads whatever strides attention's derivative has."""
    batch, length, heads, d = dq.shape
    key_value_heads = dk.shape[2]
    d_qkv = torch.empty((batch, length, heads + 2 * key_value_heads, d), device=dq.device, dtype=dq.dtype)
    for part, first, turn in ((dq, 0, True), (dk, heads, True), (dv, heads + key_value_heads, False)):
        _rotate_into[(batch * length,)](
            part, d_qkv, cos, sin, length, part.shape[2], first, *part.stride()[:3], d_qkv.stride(1),
            half=d // 2, at_once=8, turn=turn, num_warps=4,
        )  # fmt: skip
    return d_qkv


OPS = Ops(norm_backward=norm_backward, rotate=rotate, rotate_backward=rotate_backward, swiglu_backward=swiglu_backward)


@triton.jit
def _norm_backward(
    x, weight, dy, dx, back, normed, partial, rows, epsilon,
    width: tl.constexpr, block: tl.constexpr, adds: tl.constexpr,
):  # fmt: skip
    columns = tl.arange(0, block)
    inside = columns < width
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    total = tl.zeros((block,), tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        at = tl.cast(row, tl.int64) * width + columns
        wide = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        d = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(wide * wide) / width + epsilon)
        unit = wide * scale
        d_w = d * w
        result = scale * (d_w - unit * (tl.sum(d_w * unit) / width))
        if adds:
            result += tl.load(dx + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(back + at, result.to(back.dtype.element_ty), mask=inside)
        tl.store(normed + at, (unit * w).to(normed.dtype.element_ty), mask=inside)
        total += d * unit
    tl.store(partial + tl.program_id(0) * width + columns, total, mask=inside)


@triton.jit
def _swiglu_backward(gate_up, d_product, width: tl.constexpr, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * block + tl.arange(0, block)
    inside = columns < width
    gate_at, up_at, d_at = row * 2 * width + columns, row * 2 * width + width + columns, row * width + columns
    gate = tl.load(gate_up + gate_at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(gate_up + up_at, mask=inside, other=0.0).to(tl.float32)
    d = tl.load(d_product + d_at, mask=inside, other=0.0).to(tl.float32)
    sigmoid = tl.sigmoid(gate)
    silu = gate * sigmoid
    kind = gate_up.dtype.element_ty
    tl.store(gate_up + gate_at, (d * up * (sigmoid + silu * (1.0 - sigmoid))).to(kind), mask=inside)
    tl.store(gate_up + up_at, (d * silu).to(kind), mask=inside)
    tl.store(d_product + d_at, (silu * up).to(kind), mask=inside)


@triton.jit
def _rotate(qkv, cos, sin, length, heads, row_stride, half: tl.constexpr, at_once: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, half)
    angle = (row % length) * half + column
    c, s = tl.load(cos + angle)[None, :], tl.load(sin + angle)[None, :]
    for first in range(0, heads, at_once):
        head = first + tl.arange(0, at_once)
        at = row * row_stride + head[:, None] * (2 * half) + column[None, :]
        inside = (head < heads)[:, None]
        a = tl.load(qkv + at, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(qkv + at + half, mask=inside, other=0.0).to(tl.float32)
        tl.store(qkv + at, (a * c - b * s).to(qkv.dtype.element_ty), mask=inside)
        tl.store(qkv + at + half, (b * c + a * s).to(qkv.dtype.element_ty), mask=inside)


@triton.jit
def _rotate_into(
    part, out, cos, sin, length, heads, first_head, stride_b, stride_t, stride_h, out_stride,
    half: tl.constexpr, at_once: tl.constexpr, turn: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, half)
    c, s = tl.full((1, half), 1.0, tl.float32), tl.zeros((1, half), tl.float32)
    if turn:
        angle = (row % length) * half + column
        c, s = tl.load(cos + angle)[None, :], -tl.load(sin + angle)[None, :]
    for first in range(0, heads, at_once):
        head = first + tl.arange(0, at_once)
        inside = (head < heads)[:, None]
        source = (row // length) * stride_b + (row % length) * stride_t + head[:, None] * stride_h + column[None, :]
        a = tl.load(part + source, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(part + source + half, mask=inside, other=0.0).to(tl.float32)
        at = row * out_stride + (first_head + head[:, None]) * (2 * half) + column[None, :]
        tl.store(out + at, (a * c - b * s).to(out.dtype.element_ty), mask=inside)
        tl.store(out + at + half, (b * c + a * s).to(out.dtype.element_ty), mask=inside)
