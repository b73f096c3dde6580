"""One rank's sharded AdamW is torch's AdamW with DeepSpeed's clipping; several ranks: test_direct."""

from collections.abc import Sequence
from copy import deepcopy

import pytest
import torch
from torch import Tensor

from trainer.sharded_adam import ShardedAdam

pytestmark = pytest.mark.torch


def _tensors(*lengths: int, seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(n, generator=generator) for n in lengths]


def _sharded(weights: Sequence[Tensor], gradients: Sequence[Tensor]) -> ShardedAdam:
    return ShardedAdam(weights, gradients, rank=0, ranks=1, clipping=1.0, schedule=lambda step: 0.1 / (step + 1))


def _stepped(adam: ShardedAdam, gradients: Sequence[Tensor], number: int) -> None:
    for gradient, fresh in zip(gradients, _tensors(*map(len, gradients), seed=number), strict=True):
        gradient.copy_(fresh)
    adam.step(number, adam.squared_norm().sqrt())


def test_it_steps_as_torch_s_adamw_does_on_clipped_gradients() -> None:
    weights, gradients = _tensors(128, 256, seed=100), _tensors(128, 256, seed=101)
    reference = [w.clone().requires_grad_() for w in weights]
    torch_adam = torch.optim.AdamW(reference, lr=0.1, weight_decay=0.0)
    adam = _sharded(weights, gradients)
    for number in range(3):
        _stepped(adam, gradients, number)
        for parameter, gradient in zip(reference, gradients, strict=True):
            parameter.grad = gradient.clone()
        torch.nn.utils.clip_grad_norm_(reference, 1.0)
        torch_adam.param_groups[0]["lr"] = 0.1 / (number + 1)
        torch_adam.step()
    for ours, theirs in zip(weights, reference, strict=True):
        torch.testing.assert_close(ours, theirs.detach())


def test_masters_keep_what_bf16_weights_round_away() -> None:
    weights, gradients = [torch.ones(128, dtype=torch.bfloat16)], [torch.zeros(128, dtype=torch.bfloat16)]
    adam = ShardedAdam(weights, gradients, rank=0, ranks=1, clipping=1.0, schedule=lambda _: 1e-3)
    for number in range(8):
        gradients[0].fill_(1.0)
        adam.step(number, adam.squared_norm().sqrt())
    # bf16's neighbours of 1 are 0.0039 below and 0.0078 above: no single step of 0.001 would have moved it.
    assert weights[0].unique().tolist() == [0.9921875]


def test_a_small_gradient_is_not_scaled_up() -> None:
    weights, gradients = [torch.zeros(128)], [torch.full((128,), 1e-4)]
    adam = ShardedAdam(weights, gradients, rank=0, ranks=1, clipping=1.0, schedule=lambda _: 1.0)
    adam.step(0, adam.squared_norm().sqrt())
    torch.testing.assert_close(adam.state()["means"][0], torch.full((128,), 1e-5))


def test_a_loaded_state_continues_as_if_nothing_had_happened() -> None:
    weights, gradients = _tensors(128, 256, seed=100), _tensors(128, 256, seed=101)
    first = _sharded(weights, gradients)
    _stepped(first, gradients, 0)
    other_weights, other_gradients = _tensors(128, 256, seed=7), _tensors(128, 256, seed=8)
    second = _sharded(other_weights, other_gradients)
    second.load(deepcopy(first.state()))
    assert all(torch.equal(a, b) for a, b in zip(weights, other_weights, strict=True))
    _stepped(first, gradients, 1)
    _stepped(second, other_gradients, 1)
    assert all(torch.equal(a, b) for a, b in zip(weights, other_weights, strict=True))


def test_shards_of_another_length_are_refused() -> None:
    written = _sharded(_tensors(128, seed=1), _tensors(128, seed=2)).state()
    other = _sharded(_tensors(256, seed=1), _tensors(256, seed=2))
    with pytest.raises(ValueError, match="the checkpoint's shards are of other lengths than this run's"):
        other.load(written)


@pytest.mark.parametrize("fault", [float("nan"), float("inf")])
def test_a_gradient_that_is_no_number_changes_nothing(fault: float) -> None:
    weights, gradients = _tensors(128, 256, seed=100), _tensors(128, 256, seed=101)
    adam = _sharded(weights, gradients)
    _stepped(adam, gradients, 0)
    before = deepcopy((weights, adam.state()))
    gradients[0][7] = fault
    adam.step(1, adam.squared_norm().sqrt())
    now = (weights, adam.state())
    assert all(torch.equal(a, b) for a, b in zip(before[0], now[0], strict=True))
    for name, tensors in before[1].items():
        assert all(torch.equal(a, b) for a, b in zip(tensors, now[1][name], strict=True)), name
