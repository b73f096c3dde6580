"""One rank of a test: makes the config's model and writes how far its resident set grew while it did."""

import json
import sys
from pathlib import Path

import deepspeed
import torch.distributed as dist
from transformers import set_seed

from tests.trainer.launching import tiny_config
from trainer.config import read_config
from trainer.cpu_backend import start_gloo
from trainer.loop import training_arguments
from trainer.model import make_model, parameter_count

STATUS = Path("/proc/self/status")


def _kib(field: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1])


def main() -> None:
    config, folder = read_config(Path(sys.argv[1])), Path(sys.argv[2])
    arguments = training_arguments(config, folder)
    start_gloo(60)
    set_seed(config.seed)
    make_model(tiny_config(recipe=config.recipe), arguments.device)  # loads what is loaded once a process
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here (proc(5))
    before = _kib("VmRSS")
    model = make_model(config, arguments.device)
    grown = (_kib("VmHWM") - before) * 1024
    weight = model.get_input_embeddings().weight
    with deepspeed.zero.GatheredParameters([weight], enabled=config.recipe.zero.stage == 3):
        std = float(weight.float().std())
    answer = {"peak_growth_bytes": grown, "parameters": parameter_count(model), "embedding_std": std}
    (folder / f"rank-{dist.get_rank()}.json").write_text(json.dumps(answer))
    dist.barrier()
    dist.destroy_process_group()


main()
