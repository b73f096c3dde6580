"""The training loop: Hugging Face's Trainer under DeepSpeed, with its steps timed and its bytes bounded.

Inside the timed window nothing crosses ranks but DeepSpeed's own collectives and one reduction of two
numbers a step. So the Trainer's logging and its count of the batch's tokens, which gather, are replaced:
every rank knows the whole step's samples and counts the targets itself.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from transformers import (
    PreTrainedModel,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from trainer import counters
from trainer.checkpoint import CheckpointError, StopWish, checkpoint_folder, mark_complete, newest_marked
from trainer.config import TrainConfig
from trainer.deepspeed_config import deepspeed_config
from trainer.errors import first_line
from trainer.feed import MicroBatch, MicroBatches
from trainer.progress import RECENT, progress_line
from trainer.record import Connection, CounterSample, Phase, Status
from trainer.steps import StepWriter, is_finite
from trainer.watchdog import Watchdog

TIMEOUT_S = 900
"""A collective that takes longer than this hangs; the default of 30 minutes costs more than it saves."""

CHECKPOINTS_KEPT = 2

LinkCheck = Callable[[], bool]
"""Collective: True on all ranks when the links are what the plan says, or when it doesn't matter."""


def training_arguments(config: TrainConfig, checkpoints: Path) -> TrainingArguments:
    """The Trainer's arguments; keep them until the model exists: ZeRO-3 is known by a weak reference."""
    gpu = torch.cuda.is_available()
    recipe = config.recipe
    return TrainingArguments(
        output_dir=str(checkpoints),
        max_steps=config.steps,
        per_device_train_batch_size=recipe.micro_batch,
        gradient_accumulation_steps=recipe.accumulation,
        learning_rate=recipe.learning_rate,
        max_grad_norm=recipe.gradient_clipping,
        activation_checkpointing=recipe.activation_checkpointing,
        bf16=True,
        use_cpu=not gpu,
        optim="adamw_torch_fused" if gpu else "adamw_torch",
        deepspeed=deepspeed_config(config),
        seed=config.seed,
        logging_strategy="no",
        save_strategy="no",
        save_total_limit=CHECKPOINTS_KEPT,
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=gpu,
        remove_unused_columns=False,
        logging_nan_inf_filter=False,
        ddp_timeout=TIMEOUT_S,
    )


@dataclass(frozen=True, kw_only=True)
class Agreed:
    """What all ranks know alike of a step that is over."""

    loss: float
    gradient_norm: float | None
    stop: bool
    """Some rank was asked to end."""
    finite: bool
    """Loss and gradient are numbers on all ranks."""


class Loop(TrainerCallback):
    """What happens between steps: lines, the timed window, checkpoints, and the wish to stop."""

    def __init__(
        self, config: TrainConfig, rank: int, wish: StopWish, writer: StepWriter, links_fit: LinkCheck
    ) -> None:
        self._config, self._rank, self._wish, self._links_fit = config, rank, wish, links_fit
        self._losses = torch.zeros((), dtype=torch.float64)
        self._first_step = 0
        self.writer = writer
        self._recent_s: list[float] = []
        self.watchdog: Watchdog | None = None
        self.gradient_norm: Callable[[], object] = lambda: None
        self.settle: Callable[[], None] = lambda: None
        """Waits for an engine's traffic that outlasts its step."""
        self.kernels: dict[str, str] = {}
        self.status: Status = "complete"
        self.counters: list[CounterSample] = []
        self.connections: tuple[Connection, ...] = ()
        self.bookkeeping_s = 0.0
        self.began = 0.0

    def add_loss(self, loss: torch.Tensor) -> None:
        """Add one micro-batch's loss, already divided by the step's targets and multiplied by the ranks."""
        self._losses = self._losses.to(loss.device) + loss.detach().double()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """As `begin`; the Trainer calls this."""
        self.begin(state, control)

    def begin(self, state: TrainerState, control: TrainerControl) -> None:
        """Warm-up counts from where this process begins, because a resumed process is cold too."""
        self._first_step = state.global_step
        self.began = time.perf_counter()
        self._beat(state.global_step + 1, within_s=TIMEOUT_S)
        self.writer.restart()
        if self._config.warmup_steps == 0:
            self._open_window(state, control)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Close the step on all ranks; the Trainer calls this."""
        norm = _number(self.gradient_norm())
        loss, stop, finite = self._agree(norm)
        self.ended(state, control, Agreed(loss=loss, gradient_norm=norm, stop=stop, finite=finite))

    @property
    def stop_wished(self) -> bool:
        """Whether this rank was asked to end."""
        return self._wish.raised

    def ended(self, state: TrainerState, control: TrainerControl, agreed: Agreed) -> None:
        """A step is over: its line, then what follows it."""
        step, done = state.global_step, state.global_step - self._first_step
        phase: Phase = "warmup" if done <= self._config.warmup_steps else "timed"
        self.writer.ended(step, phase, agreed.loss, agreed.gradient_norm)
        if self._rank == 0:
            # Between two steps, so in the time of neither; `topo watch` reads it off the pod's log.
            self._recent_s = [*self._recent_s[1 - RECENT :], self.writer.last_s]
            print(progress_line(step, self._config.steps, agreed.loss, self._recent_s), flush=True)
        kept_s = self.writer.restart()
        if phase == "timed":
            self.bookkeeping_s += kept_s
        if not agreed.finite and self._config.on_nan_loss == "stop":
            self.status = "stopped-nan-loss"
        elif agreed.stop and step < self._config.steps:
            self.status = "interrupted"
        ended = self.status != "complete"
        control.should_training_stop = ended or control.should_training_stop
        if ended or step >= self._config.steps:
            self._close_window(state)
        elif done == self._config.warmup_steps:
            self._open_window(state, control)
        control.should_save = self._save_is_due(step)
        slow = control.should_save or step >= self._config.steps
        self._beat(step + 1, within_s=TIMEOUT_S if slow else self._config.hang_s, step_s=self.writer.last_s)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """This rank has saved; the Trainer calls this."""
        self.saved(state, checkpoint_folder(Path(str(args.output_dir)), state.global_step))

    def saved(self, state: TrainerState, checkpoint: Path) -> None:
        """Once all ranks have saved, say so in the checkpoint."""
        dist.barrier()
        mark_complete(self._config, checkpoint, self._rank)
        seconds = self.writer.saved()
        self._beat(state.global_step + 1, within_s=self._config.hang_s)
        if self._rank == 0:
            print(f"checkpoint-{state.global_step}: saved in {seconds:.1f} s, which no step's time holds", flush=True)

    def _beat(self, step: int, *, within_s: float, step_s: float = 0.0) -> None:
        if self.watchdog is not None:
            self.watchdog.beat(step, within_s, step_s)

    def _agree(self, norm: float | None) -> tuple[float, bool, bool]:
        """Loss of all ranks, whether any of them is to stop, and whether loss and gradient are finite on all."""
        lost = self._losses.new_tensor(float(not is_finite(0.0, norm)))
        numbers = torch.stack([self._losses, self._losses.new_tensor(float(self._wish.raised)), lost])
        dist.all_reduce(numbers)
        if numbers.is_cuda:
            torch.cuda.synchronize()
        self._losses = torch.zeros_like(self._losses)
        loss, wishes, losts = numbers.tolist()
        return loss / dist.get_world_size(), wishes > 0, is_finite(loss, None) and not losts

    def _save_is_due(self, step: int) -> bool:
        """An interrupted run saves where somebody goes on from it; one that stopped for a fault never does."""
        every = self._config.checkpoint_every_steps
        if self.status != "complete":
            return self.status == "interrupted" and self._config.resume
        return (every is not None and step % every == 0) or (
            step >= self._config.steps and self._config.recipe.save_at_end
        )

    def _open_window(self, state: TrainerState, control: TrainerControl) -> None:
        if not self._links_fit():
            self.status = "stopped-wrong-link"
            control.should_training_stop = True
            return
        began = time.perf_counter()
        self.settle()
        waited_s = time.perf_counter() - began
        self._sample(state.global_step)
        self.writer.restart()
        # Traffic of the step before, as the last timed step's will fall behind the window: each pays for one.
        self.writer.charge(waited_s)

    def _close_window(self, state: TrainerState) -> None:
        if self.counters:
            self.connections = counters.connections()
            self._sample(state.global_step)
        self.writer.restart()

    def _sample(self, after_step: int) -> None:
        """Between two barriers, so that no rank's bytes of a step fall on the wrong side."""
        self.settle()
        dist.barrier()
        self.counters.append(counters.sample(after_step))
        dist.barrier()


class LineTrainer(Trainer):
    """The Trainer with our feed, our count of targets and our checkpoints."""

    def __init__(
        self,
        config: TrainConfig,
        model: PreTrainedModel,
        args: TrainingArguments,
        feed: MicroBatches,
        loop: Loop,
    ) -> None:
        super().__init__(model=model, args=args, train_dataset=feed, callbacks=[loop])
        self.remove_callback(PrinterCallback)
        self._config, self._feed, self._loop = config, feed, loop
        loop.gradient_norm = self._gradient_norm

    def get_train_dataloader(self) -> DataLoader[Any]:
        """One item is one micro-batch of this rank; not sharded again by accelerate."""
        return DataLoader(self._feed, batch_size=1, shuffle=False, collate_fn=itemgetter(0))

    def get_batch_samples(
        self,
        epoch_iterator: Iterator[MicroBatch],
        num_batches: int,
        device: torch.device,
    ) -> tuple[list[dict[str, torch.Tensor]], int]:
        """A step's micro-batches, and the targets that its loss is divided by: those of all ranks.

        A step of blank lines has none: divided by one, its loss is 0 instead of not a number.
        """
        began = time.perf_counter()
        batches = list(islice(epoch_iterator, num_batches))
        self._loop.writer.fed(batches, time.perf_counter() - began)
        return [batch.inputs for batch in batches], max(1, self._loop.writer.targets)

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        """The Trainer's own loss, noted for the step's line."""
        loss: Any = super().compute_loss(*args, **kwargs)
        self._loop.add_loss(loss)
        return loss

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Whole weights only where the recipe asks for them, and only after the last step.

        DeepSpeed's checkpoint has the weights already, and gathering them would send a whole model over the
        links inside the timed window.
        """
        at_end = self.state.global_step >= self._config.steps
        if at_end and self._config.recipe.zero.gather_16bit_weights_on_save:
            super().save_model(output_dir, _internal_call)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Save, or leave no half of it: its room may be what the next save lacks."""
        run, name = Path(str(self.args.output_dir)), f"checkpoint-{self.state.global_step}"
        try:
            super()._save_checkpoint(model, trial)
        except (OSError, RuntimeError) as error:  # torch raises RuntimeError where a write fails
            shutil.rmtree(run / name, ignore_errors=True)
            raise CheckpointError(f"{run / name}: can't be saved: {first_line(error)}; {newest_marked(run)}") from error

    def _gradient_norm(self) -> object:
        engine: Any = self.model_wrapped
        return engine.get_global_grad_norm()


def _number(norm: object) -> float | None:
    """DeepSpeed gives a float, a tensor or nothing."""
    if isinstance(norm, torch.Tensor):
        return float(norm.item())
    return float(norm) if isinstance(norm, (int, float)) else None
