"""Work: what one optimizer step trains, and where. The argument of every prediction."""

from dataclasses import dataclass
from typing import Literal

from trainer.config import Architecture, RecipeConfig
from trainer.contract import Backend
from workloads.catalogue.topologies import Topology

LINES_MEAN_TOKENS = 70.0
"""Mean length of a line of wikitext-2 in Llama-3 tokens; a micro-batch pads to its longest."""
LINES_PADDING_EXPONENT = 0.65
"""The longest of n lines is about 70 n^0.65: 174 at 4 (40% real tokens), capped by the sequence length."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one step trains."""

    architecture: Architecture
    recipe: RecipeConfig
    topology: Topology
    sequence_length: int
    feed: Literal["lines", "packed"]

    @property
    def slots_per_micro_batch(self) -> float:
        """Token slots that one rank works through in one micro-batch, padding included."""
        full = float(self.recipe.micro_batch * self.sequence_length)
        if self.feed == "packed":
            return full
        longest = LINES_MEAN_TOKENS * float(self.recipe.micro_batch) ** LINES_PADDING_EXPONENT
        return float(min(full, self.recipe.micro_batch * longest))

    @property
    def slots_per_step(self) -> float:
        """Token slots of all ranks in one optimizer step."""
        return self.slots_per_micro_batch * self.recipe.accumulation * self.topology.ranks

    @property
    def real_tokens_per_step(self) -> float:
        """Of those slots, the ones that are no padding: what throughput and MFU count."""
        if self.feed == "packed":
            return self.slots_per_step
        mean = min(LINES_MEAN_TOKENS, float(self.sequence_length))
        return mean * self.recipe.micro_batch * self.recipe.accumulation * self.topology.ranks

    @property
    def backend(self) -> Backend:
        """NCCL between GPUs, gloo between CPU ranks."""
        return "gloo" if self.topology.machine.gpu is None else "nccl"
