"""The model is made where it will live: under ZeRO-3 no rank ever holds the whole of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trainer.launching import RECIPE, TINY, ZERO_3, environment_of, free_port, tiny_config
from trainer.config import Architecture, ModelConfig
from trainer.flops import parameters
from trainer.model import llama_config

pytestmark = pytest.mark.torch

LARGE = Architecture(
    hidden_size=1536,
    intermediate_size=4096,
    layers=15,
    attention_heads=16,
    key_value_heads=16,
    head_dim=96,
    vocabulary_size=1000,
    tied_embeddings=False,
    max_positions=512,
    rope_theta=500_000.0,
)
"""Small layers, so that what a rank gathers for one module is small beside its shard."""

PROBE = Path(__file__).with_name("peak_memory.py")


def _peaks(architecture: Architecture, stage: int, folder: Path) -> list[dict[str, float]]:
    zero = ZERO_3.model_copy(update={"stage": stage})
    config = tiny_config(
        model=ModelConfig(name="large", architecture=architecture, tokenizer=None),
        recipe=RECIPE.model_copy(update={"zero": zero}),
    )
    file = folder / f"stage-{stage}.json"
    file.write_text(config.model_dump_json())
    port = free_port()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={port}"),
            *(str(PROBE), str(file), str(folder)),
        ],
        cwd=Path(__file__).parents[2],
        # Freed memory goes back to the kernel at once, so that the peak holds what was in use.
        env=environment_of(folder, folder, {"MALLOC_MMAP_THRESHOLD_": "65536"}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in (0, 1)]


def test_under_zero_3_no_rank_holds_a_whole_copy_of_400_million_parameters(tmp_path: Path) -> None:
    count = parameters(LARGE)
    assert count >= 400_000_000
    whole_copy = 2 * count  # bf16
    for rank in _peaks(LARGE, 3, tmp_path):
        assert rank["parameters"] == count
        assert 0.5 * whole_copy <= rank["peak_growth_bytes"] < 0.75 * whole_copy


def test_weights_are_initialised_as_transformers_does_it(tmp_path: Path) -> None:
    for stage in (3, 1):
        first, second = _peaks(TINY, stage, tmp_path)
        assert first["embedding_std"] == pytest.approx(0.02, rel=0.05)
        assert second["embedding_std"] == first["embedding_std"]


def test_the_architecture_arrives_in_transformers_words() -> None:
    config = llama_config(LARGE)
    assert (config.hidden_size, config.num_hidden_layers, config.num_key_value_heads) == (1536, 15, 16)
    assert config.rope_parameters["rope_theta"] == 500_000.0
    assert config.head_dim == 96
