"""The engine `direct`: our own passes (trainer.decoder) and our own sharded AdamW (trainer.sharded_adam).

It stands beside DeepSpeed's, which the seeds' recipes keep. A step's traffic is one reduce-scatter of the
gradients, behind the last backward pass, and one all-gather of the weights, behind the next forward pass; so a
step ends, for its line, when its gradient's norm is known on the host, and its gather falls into the next one's
time. The Trainer's own defaults are kept: AdamW without decay, the rate falling linearly to 0.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor
from transformers import PreTrainedModel, TrainerControl, TrainerState

from trainer.buckets import make_flat, named_views, weights_of
from trainer.checkpoint import TRAINER_STATE, CheckpointError, checkpoint_folder, newest_marked
from trainer.config import TrainConfig
from trainer.decoder import Decoder, Kernels, Shape, Watch
from trainer.decoder_ops import IGNORED
from trainer.errors import first_line
from trainer.feed import MicroBatch, MicroBatches
from trainer.loop import CHECKPOINTS_KEPT, Agreed, Loop
from trainer.sharded_adam import ShardedAdam
from trainer.steps import is_finite


class DirectTrainer:
    """Trains a model by its config; `loop` is told of every step, as the Hugging Face Trainer would."""

    def __init__(
        self,
        config: TrainConfig,
        model: PreTrainedModel,
        kernels: Kernels,
        feed: MicroBatches,
        loop: Loop,
        checkpoints: Path,
    ) -> None:
        self._config, self._feed, self._loop, self._folder = config, feed, loop, checkpoints
        a, device, rank = config.model.architecture, model.device, dist.get_rank()
        weights = _adopt(config, model)
        gradients = make_flat(a, config.ranks, device, weights[0].dtype)
        shape = Shape(
            heads=a.attention_heads,
            key_value_heads=a.key_value_heads,
            head_dim=a.head_dim,
            rope_theta=a.rope_theta,
            epsilon=model.config.rms_norm_eps,
        )
        recompute = config.recipe.activation_checkpointing
        self._decoder = Decoder(shape, weights_of(a, weights), weights_of(a, gradients), kernels, recompute=recompute)
        self._adam = ShardedAdam(
            weights,
            gradients,
            rank=rank,
            ranks=config.ranks,
            clipping=config.recipe.gradient_clipping,
            schedule=lambda step: linear_rate(config, step),
        )
        self._rank, self._device = rank, device
        loop.settle = self._adam.settle

    def train(self, resumed: Path | None) -> None:
        """Train from the checkpoint, or from step 1, to the last step or to a wish to stop."""
        state, control = TrainerState(), TrainerControl()
        if resumed is not None:
            state = TrainerState.load_from_json(str(resumed / TRAINER_STATE))
            self._adam.load(torch.load(resumed / _shard_name(self._rank), map_location="cpu", weights_only=True))
        self._loop.begin(state, control)
        batches = self._batches(state.global_step)
        while state.global_step < self._config.steps and not control.should_training_stop:
            batches = self._step(state, control, batches)
            if control.should_save:
                self._save(state)
                control.should_save = False

    def _step(
        self, state: TrainerState, control: TrainerControl, batches: Sequence[MicroBatch]
    ) -> Sequence[MicroBatch]:
        """One optimizer step; returns the next one's micro-batches, made while the device worked."""
        self._loop.writer.fed(list(batches), 0.0)
        loss = self._passes(batches)
        squares, wish = self._adam.squared_norm(), float(self._loop.stop_wished)
        numbers = torch.stack([squares, loss.to(squares.dtype), squares.new_tensor(wish)])
        dist.all_reduce(numbers)
        known = _Fetched(numbers)
        self._adam.step(state.global_step, numbers[0].sqrt())
        upcoming = self._batches(state.global_step + 1)
        squared_norm, total_loss, wishes = known.wait()
        state.global_step += 1
        norm = squared_norm**0.5
        finite = is_finite(total_loss, norm)
        agreed = Agreed(loss=total_loss, gradient_norm=norm, stop=wishes > 0, finite=finite)
        self._loop.ended(state, control, agreed)
        return upcoming

    def _passes(self, batches: Sequence[MicroBatch]) -> Tensor:
        """Forward and backward passes of a step; the reductions begin during the last."""
        scale = torch.tensor(1.0 / max(1, batches[0].targets_of_step), device=self._device)
        losses = []
        for turn, batch in enumerate(batches):
            last = turn == len(batches) - 1
            watch = Watch(before_read=self._adam.wait, after_added=self._adam.reduce if last else _nothing)
            ids = batch.inputs["input_ids"].to(self._device, non_blocking=True)
            targets = _shifted(batch.inputs["labels"]).to(self._device, non_blocking=True)
            losses.append(self._decoder.learn(ids, targets, scale, watch, first=turn == 0))
        return torch.stack(losses).sum()

    def _batches(self, step: int) -> Sequence[MicroBatch]:
        if step >= self._config.steps:
            return ()
        turns = self._config.recipe.accumulation
        return [self._feed[step * turns + turn] for turn in range(turns)]

    def _save(self, state: TrainerState) -> None:
        """This rank's shard and, from rank 0, the common state; then all say that it is whole."""
        folder = checkpoint_folder(self._folder, state.global_step)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            dist.barrier()  # no rank may make the folder anew that another, which failed, took away
            torch.save(self._adam.state(), folder / _shard_name(self._rank))
            # Each pod's first rank: pods may not share the folder, and the state is the same.
            if self._rank % self._config.ranks_per_pod == 0:
                state.save_to_json(str(folder / TRAINER_STATE))
        except (OSError, RuntimeError) as error:  # torch raises RuntimeError where a write fails
            shutil.rmtree(folder, ignore_errors=True)
            raise CheckpointError(
                f"{folder}: can't be saved: {first_line(error)}; {newest_marked(self._folder)}"
            ) from error
        self._loop.saved(state, folder)
        self._forget_old()

    def _forget_old(self) -> None:
        """Keep the newest; only after all ranks finished theirs."""
        steps = [int(c.name.removeprefix("checkpoint-")) for c in self._folder.glob("checkpoint-*[0-9]")]
        for step in sorted(steps)[:-CHECKPOINTS_KEPT]:
            shutil.rmtree(checkpoint_folder(self._folder, step), ignore_errors=True)


class _Fetched:
    """Numbers on their way to the host, while the device is given more to do."""

    def __init__(self, numbers: Tensor) -> None:
        self._host = numbers.to("cpu", non_blocking=True)
        self._done = torch.cuda.Event() if numbers.is_cuda else None
        if self._done is not None:
            self._done.record()

    def wait(self) -> list[float]:
        if self._done is not None:
            self._done.synchronize()
        numbers: list[float] = self._host.tolist()
        return numbers


def linear_rate(config: TrainConfig, step: int) -> float:
    """The learning rate of step `step`, from 0: the Trainer's default, linear to 0 without warm-up."""
    return config.recipe.learning_rate * max(0.0, 1.0 - step / config.steps)


def _adopt(config: TrainConfig, model: PreTrainedModel) -> tuple[Tensor, ...]:
    """The model's weights in flat buckets; each tensor of the model is freed once it is copied."""
    flat = make_flat(config.model.architecture, config.ranks, model.device, model.dtype)
    named = dict(model.named_parameters())
    views = named_views(config.model.architecture, flat)
    assert named.keys() == views.keys(), f"not a plain Llama: {sorted(named.keys() ^ views.keys())}"
    for name, view in views.items():
        view.copy_(named[name].detach())
        named[name].data = torch.empty(0, device=model.device, dtype=model.dtype)
    return flat


def _shifted(labels: Tensor) -> Tensor:
    """What each position is to predict: the label after it; the last has none."""
    targets = torch.full_like(labels, IGNORED)
    targets[:, :-1] = labels[:, 1:]
    return targets


def _shard_name(rank: int) -> str:
    return f"direct-rank-{rank:05d}.pt"


def _nothing(bucket: int) -> None:
    """A micro-batch that isn't the step's last has nothing to reduce."""
