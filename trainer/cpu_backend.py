"""Why training without a GPU is set up as it is: ZeRO-3 over gloo, unpatched.

Each line here answers a failure seen with DeepSpeed 0.19.8, transformers 5.23 and accelerate 1.15:

- Without `use_cpu`, TrainingArguments refuses bf16; with fp32 it quietly trains with a world of 1.
- With `use_cpu` accelerate starts no DeepSpeed group, and `from_config` dies because zero.Init sees a world
  of 1. So the group is started between the two.
- DeepSpeed compiles a shared-memory module on first use (half a minute, needs a compiler). Told that the
  module is not compatible with this machine, it uses gloo alone, with the same losses.
"""

from datetime import timedelta

import deepspeed
import deepspeed.ops


def start_gloo(timeout_s: int) -> None:
    """Start the process group; call after TrainingArguments exist and before the model does."""
    # Read by DeepSpeed's torch backend alone. Set whole, because reading it first probes every operator.
    deepspeed.ops.__compatible_ops__ = {"deepspeed_shm_comm": False, "deepspeed_not_implemented": False}
    deepspeed.init_distributed("gloo", timeout=timedelta(seconds=timeout_s), verbose=False)
