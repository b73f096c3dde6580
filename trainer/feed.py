"""Samples to micro-batches: the k-th optimizer step takes the same samples whatever the ranks are."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch.utils.data import Dataset

from trainer.config import TrainConfig
from trainer.data import Indices, Samples

IGNORED = -100
"""torch's cross entropy takes no loss from a target of this value."""


@dataclass(frozen=True)
class MicroBatch:
    """One forward pass of one rank."""

    inputs: dict[str, torch.Tensor]
    real_tokens: int
    padded_tokens: int
    targets_of_step: int
    """Tokens that all ranks together learn to predict in this optimizer step."""


class MicroBatches(Dataset[MicroBatch]):
    """All micro-batches of one rank, from step 1 to the last.

    Step k takes the samples at places (k-1) G to k G of the endless order of epochs, G being the sequences
    of a step; so a step's sum is the same for every split of G into ranks, micro-batch and accumulation.
    """

    def __init__(self, config: TrainConfig, samples: Samples, rank: int) -> None:
        assert 0 <= rank < config.ranks, f"rank {rank} of {config.ranks}"
        self._config, self._samples, self._rank = config, samples, rank
        self._order = lru_cache(maxsize=2)(samples.order)

    def __len__(self) -> int:
        return self._config.steps * self._config.recipe.accumulation

    def __getitem__(self, number: int) -> MicroBatch:
        if not 0 <= number < len(self):
            raise IndexError(number)
        step, turn = divmod(number, self._config.recipe.accumulation)
        chosen = self.samples_of_step(step)
        micro = self._config.recipe.micro_batch
        first = (turn * self._config.ranks + self._rank) * micro
        targets = int((self._samples.lengths[chosen] - 1).sum())
        return _collate([self._samples[i] for i in chosen[first : first + micro]], targets)

    def samples_of_step(self, step: int) -> Indices:
        """Indices of the samples that step number `step` (from 0) takes on all ranks."""
        size = self._config.sequences_per_step
        places = np.arange(step * size, (step + 1) * size)
        epochs, within = np.divmod(places, len(self._samples))
        return np.concatenate([self._order(int(e))[within[epochs == e]] for e in np.unique(epochs)])


def _collate(rows: list[np.ndarray], targets_of_step: int) -> MicroBatch:
    width = max(map(len, rows))
    real = sum(map(len, rows))
    ids = torch.zeros((len(rows), width), dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for line, row in enumerate(rows):
        ids[line, : len(row)] = torch.from_numpy(row.astype(np.int64))
        mask[line, : len(row)] = 1
    inputs = {"input_ids": ids, "labels": ids.masked_fill(mask == 0, IGNORED)}
    if real < ids.numel():
        inputs["attention_mask"] = mask
    return MicroBatch(inputs, real, ids.numel() - real, targets_of_step)
