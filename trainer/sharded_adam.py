"""AdamW whose states are sharded over the ranks (ZeRO stage 1), its traffic behind the passes.

Rajbhandari et al. 2020, section 5. A step sends 2 S f a rank, S being one copy of the weights and f = (N-1)/N: each
bucket's gradients are reduce-scattered once, as soon as the last micro-batch's backward pass has made them whole,
and its weights are gathered once, awaited by the next forward pass just before it reads them.
"""

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.decoder_ops import fused

BETAS, EPSILON = (0.9, 0.999), 1e-8
"""torch's and the Hugging Face Trainer's defaults; weights don't decay."""

_State = dict[str, list[Tensor]]


class ShardedAdam:
    """Master weights and moments of this rank's part of each bucket, in float32.

    Weights and gradients are flat buckets (trainer.buckets) of the same length on all ranks; rank r owns the r-th
    part of each. All methods but `wait` and `state` are collective, in the same order on all ranks.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        gradients: Sequence[Tensor],
        *,
        rank: int,
        ranks: int,
        clipping: float,
        schedule: Callable[[int], float],
    ) -> None:
        """`schedule` gives the learning rate of step k, from 0; `clipping` the largest norm of the gradient."""
        self._weights, self._gradients, self._ranks = weights, gradients, ranks
        self._own_weights = [_part(bucket, rank, ranks) for bucket in weights]
        self._own_gradients = [_part(bucket, rank, ranks) for bucket in gradients]
        self._masters = [own.float() for own in self._own_weights]
        # float() of a float32 tensor is the tensor itself, and a master must be apart.
        self._masters = [m.clone() if m is o else m for m, o in zip(self._masters, self._own_weights, strict=True)]
        self._means = [torch.zeros_like(master) for master in self._masters]
        self._squares = [torch.zeros_like(master) for master in self._masters]
        self._clipping, self._schedule = clipping, schedule
        self._reductions: list[dist.Work] = []
        self._gathers: dict[int, dist.Work] = {}

    def reduce(self, bucket: int) -> None:
        """Begin to sum a bucket's gradients over the ranks, each rank getting its own part."""
        if self._ranks == 1:
            return
        own, whole = self._own_gradients[bucket], self._gradients[bucket]
        work = dist.reduce_scatter_tensor(own, whole, async_op=True)
        assert work is not None, "asynchronous"
        self._reductions.append(work)

    def squared_norm(self) -> Tensor:
        """Of this rank's part of the summed gradient, a float32 scalar; waits for the reductions."""
        for work in self._reductions:
            work.wait()
        self._reductions.clear()
        norms = [torch.linalg.vector_norm(own, dtype=torch.float32) for own in self._own_gradients]
        return torch.stack(norms).square().sum()

    def step(self, number: int, norm: Tensor) -> None:
        """Step `number` (from 0), given the whole gradient's norm; the new weights are under way afterwards.

        The gradient is scaled by clipping / (norm + 1e-6) where that is below 1, as DeepSpeed does. Where the norm
        isn't finite, the update is left out.
        """
        # Not a number where the norm isn't finite: an infinite one would make it 0.
        clip = torch.where(norm.isfinite(), (self._clipping / (norm + 1e-6)).clamp(max=1.0), torch.nan)
        first, second = (1.0 - beta ** (number + 1) for beta in BETAS)
        # Tensors, because numbers that change would be compiled anew.
        factors = torch.tensor([self._schedule(number) / first, second], device=norm.device)
        for i, own in enumerate(self._own_gradients):
            _adam(self._masters[i], self._means[i], self._squares[i], own, self._own_weights[i], clip, factors)
            self._gather(i)

    def wait(self, bucket: int) -> None:
        """Let what follows see the bucket's new weights."""
        work = self._gathers.pop(bucket, None)
        if work is not None:
            work.wait()

    def settle(self) -> None:
        """Wait for all traffic that is under way."""
        for bucket in tuple(self._gathers):
            self.wait(bucket)

    def state(self) -> _State:
        """This rank's masters and moments, for a checkpoint."""
        return {"masters": self._masters, "means": self._means, "squares": self._squares}

    def load(self, state: _State) -> None:
        """Continue from `state`; the weights follow from the masters.

        Raises ValueError where it was written for other lengths.
        """
        for name, own in self.state().items():
            kept = state[name]
            if [len(tensor) for tensor in kept] != [len(tensor) for tensor in own]:
                raise ValueError(
                    "the checkpoint's shards are of other lengths than this run's: it is of another model or another "
                    "number of ranks; delete it or resume as it was written"
                )
            for tensor, written in zip(own, kept, strict=True):
                tensor.copy_(written)
        for i, (weight, master) in enumerate(zip(self._own_weights, self._masters, strict=True)):
            weight.copy_(master)
            self._gather(i)
        self.settle()

    def _gather(self, bucket: int) -> None:
        if self._ranks == 1:
            return
        own, whole = self._own_weights[bucket], self._weights[bucket]
        work = dist.all_gather_into_tensor(whole, own, async_op=True)
        assert work is not None, "asynchronous"
        self._gathers[bucket] = work


@fused
def _adam(
    master: Tensor, mean: Tensor, square: Tensor, gradient: Tensor, weight: Tensor, clip: Tensor, factors: Tensor
) -> None:
    """One step of Adam (Kingma and Ba 2015) in one pass over memory: 28 bytes a parameter.

    gradient and weight are in the model's type, the rest in float32; clip [] scales the gradient; factors [2]: the
    learning rate over the mean's correction, and the square's correction. Where clip isn't finite, nothing changes.
    """
    g, whole = gradient.float() * clip, clip.isfinite()
    mean.copy_(torch.where(whole, mean.lerp(g, 1.0 - BETAS[0]), mean))
    square.copy_(torch.where(whole, square.lerp(g.square(), 1.0 - BETAS[1]), square))
    update = factors[0] * mean / ((square / factors[1]).sqrt() + EPSILON)
    master.copy_(torch.where(whole, master - update, master))
    weight.copy_(master)


def _part(bucket: Tensor, rank: int, ranks: int) -> Tensor:
    assert len(bucket) % ranks == 0, f"a bucket of {len(bucket)} elements for {ranks} ranks"
    length = len(bucket) // ranks
    return bucket[rank * length : (rank + 1) * length]
