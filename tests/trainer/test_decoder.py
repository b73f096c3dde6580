"""Our passes give transformers' loss and gradients, to float32's rounding."""

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from tests.trainer.launching import TINY
from trainer import decoder
from trainer.buckets import layout, length, make_flat, named_views, weights_of
from trainer.config import Architecture
from trainer.decoder import Decoder, Shape, Watch
from trainer.decoder_ops import IGNORED
from trainer.kernels import choose_kernels
from trainer.model import llama_config

pytestmark = pytest.mark.torch

CPU = torch.device("cpu")
SILENT = Watch(before_read=lambda _: None, after_added=lambda _: None)


def _model(a: Architecture) -> PreTrainedModel:
    """Random weights, the norms' too: at their initial 1 a forgotten weight wouldn't show."""
    torch.manual_seed(3)
    model: PreTrainedModel = AutoModelForCausalLM.from_config(llama_config(a), dtype=torch.float32)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def _decoder(a: Architecture, model: PreTrainedModel, *, recompute: bool) -> tuple[Decoder, dict[str, Tensor]]:
    """Our decoder of the model's weights, and its gradients, filled with what a first micro-batch must forget."""
    weights = make_flat(a, 2, CPU, torch.float32)
    gradients = make_flat(a, 2, CPU, torch.float32)
    for name, view in named_views(a, weights).items():
        view.copy_(model.get_parameter(name).detach())
    for bucket in gradients:
        bucket.fill_(1e3)
    shape = Shape(
        heads=a.attention_heads,
        key_value_heads=a.key_value_heads,
        head_dim=a.head_dim,
        rope_theta=a.rope_theta,
        epsilon=model.config.rms_norm_eps,
    )
    kernels = choose_kernels(CPU)
    made = Decoder(shape, weights_of(a, weights), weights_of(a, gradients), kernels, recompute=recompute)
    return made, named_views(a, gradients)


def _batch() -> tuple[Tensor, Tensor, Tensor]:
    """ids, the labels of transformers, and our targets; the second sequence ends in padding."""
    ids = torch.randint(0, TINY.vocabulary_size, (2, 32), generator=torch.Generator().manual_seed(5))
    labels = ids.clone()
    labels[1, 20:] = IGNORED
    targets = torch.full_like(labels, IGNORED)
    targets[:, :-1] = labels[:, 1:]
    return ids, labels, targets


@pytest.mark.parametrize("recompute", [False, True], ids=["kept", "recomputed"])
@pytest.mark.parametrize("tied", [False, True], ids=["own head", "tied head"])
def test_two_halves_of_a_step_sum_to_transformers_loss_and_gradients(
    monkeypatch: pytest.MonkeyPatch, tied: bool, recompute: bool
) -> None:
    monkeypatch.setattr(decoder, "HEAD_TOKENS", 24)  # does not divide the 64 tokens
    a = TINY.model_copy(update={"tied_embeddings": tied})
    model = _model(a)
    ids, labels, targets = _batch()
    mask = (torch.arange(32) < torch.tensor([[32], [20]])).long()
    loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    loss.backward()
    ours, gradients = _decoder(a, model, recompute=recompute)
    scale = torch.tensor(0.5 / int((targets != IGNORED).sum()))
    halves = [ours.learn(ids, targets, scale, SILENT, first=turn == 0) for turn in range(2)]
    torch.testing.assert_close(halves[0] + halves[1], loss.detach())
    assert gradients.keys() == {name for name, _ in model.named_parameters()}
    for name, gradient in gradients.items():
        expected = model.get_parameter(name).grad
        assert expected is not None
        assert (gradient - expected).norm() / expected.norm() < 5e-6, name


def test_buckets_are_announced_in_the_order_of_the_passes() -> None:
    ours, _ = _decoder(TINY, _model(TINY), recompute=False)
    ids, _, targets = _batch()
    told: list[tuple[str, int]] = []
    watch = Watch(
        before_read=lambda bucket: told.append(("read", bucket)),
        after_added=lambda bucket: told.append(("added", bucket)),
    )
    ours.learn(ids, targets, torch.tensor(1.0), watch, first=True)
    assert told == [*(("read", i) for i in range(4)), *(("added", i) for i in (3, 2, 1, 0))]


@pytest.mark.parametrize("ranks", [1, 3, 8])
def test_every_bucket_divides_among_the_ranks_and_holds_its_tensors(ranks: int) -> None:
    flat = make_flat(TINY, ranks, CPU, torch.float32)
    assert all(len(bucket) % (128 * ranks) == 0 for bucket in flat)
    assert [len(bucket) for bucket in flat] == [length(slots, ranks) for slots in layout(TINY)]
    views = named_views(TINY, flat)
    for number, view in enumerate(views.values()):
        view.fill_(number)
    assert [view.unique().tolist() for view in views.values()] == [[number] for number in range(len(views))]
