"""Each part's derivative is the derivative of its forward pass, as autograd finds it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from trainer import decoder_ops as ops

pytestmark = pytest.mark.torch

EPSILON = 1e-6


def _random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float32)


def _gradients(function: Callable[..., Tensor], d_out: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    leaves = [x.clone().requires_grad_() for x in inputs]
    gradients: tuple[Tensor, ...] = torch.autograd.grad(function(*leaves), leaves, d_out)
    return gradients


def test_the_norm_goes_back_to_its_input_and_weight_and_is_made_again() -> None:
    x, weight, d_normed, d_x = _random(5, 8), _random(8), _random(5, 8), _random(5, 8)
    back, normed, d_weight = ops.norm_backward(x, weight, EPSILON, d_normed, d_x)
    expected_x, expected_weight = _gradients(lambda a, b: ops.norm(a, b, EPSILON), d_normed, x, weight)
    torch.testing.assert_close(back, expected_x + d_x)
    torch.testing.assert_close(d_weight, expected_weight)
    torch.testing.assert_close(normed, ops.norm(x, weight, EPSILON))


def test_a_residual_is_added_before_it_is_normed() -> None:
    x, delta, weight = _random(5, 8), _random(5, 8).flip(0), _random(8)
    total, normed = ops.add_norm(x, delta, weight, EPSILON)
    torch.testing.assert_close(total, x + delta)
    torch.testing.assert_close(normed, torch.nn.functional.rms_norm(x + delta, (8,), weight, EPSILON))


def test_swiglu_goes_back_to_gate_and_up_and_is_made_again() -> None:
    gate_up, d_product = _random(5, 12), _random(5, 6)
    (expected,) = _gradients(ops.swiglu, d_product, gate_up)
    product = ops.swiglu(gate_up)
    d_gate_up, again = ops.swiglu_backward(gate_up.clone(), d_product.clone())
    torch.testing.assert_close(d_gate_up, expected)
    torch.testing.assert_close(again, product)


def test_the_inverse_rotation_is_the_rotation_s_derivative_and_leaves_values_alone() -> None:
    cos, sin = ops.rotary(7, 4, 10_000.0, torch.device("cpu"))
    qkv, d_out = _random(2, 7, 5, 4), _random(2, 7, 5, 4).flip(1)
    (expected,) = _gradients(lambda x: ops.rotate(x, cos, sin, 3, 1), d_out, qkv)
    dq, dk, dv = d_out.split([3, 1, 1], dim=2)
    torch.testing.assert_close(ops.rotate_backward(dq, dk, dv, cos, sin), expected)
    torch.testing.assert_close(ops.rotate(qkv.clone(), cos, sin, 3, 1)[:, :, 4], qkv[:, :, 4])


def test_the_loss_counts_targets_that_aren_t_ignored_and_brings_its_own_gradient() -> None:
    logits, targets, scale = _random(6, 9), torch.tensor([0, 8, ops.IGNORED, 3, 3, ops.IGNORED]), torch.tensor(0.25)

    def reference(x: Tensor) -> Tensor:
        return 0.25 * torch.nn.functional.cross_entropy(x, targets, reduction="sum")

    loss, gradient = ops.cross_entropy(logits, targets, scale)
    torch.testing.assert_close(loss, reference(logits))
    torch.testing.assert_close(gradient, _gradients(reference, torch.tensor(1.0), logits)[0])
