"""The model of a run, from its architecture alone, made where it will live."""

from contextlib import nullcontext
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedModel

from trainer.config import Architecture, TrainConfig
from trainer.flops import parameters


def make_model(config: TrainConfig, device: torch.device) -> PreTrainedModel:
    """A Llama with random weights.

    ZeRO-3: while TrainingArguments with DeepSpeed's config are alive, `from_config` enters zero.Init by
    itself, so each rank keeps its shard and never holds the whole model. An explicit zero.Init around it
    would skip transformers' own weight initialisation (embeddings of std 1.0 instead of 0.02).
    Stages 1 and 2: made on the device, because 8B parameters take minutes to initialise on the CPU.
    """
    architecture = llama_config(config.model.architecture)
    auto: Any = AutoModelForCausalLM  # has no types
    place = nullcontext() if config.recipe.zero.stage == 3 else device
    with place:
        model = auto.from_config(architecture, dtype=torch.bfloat16)
    count, expected = parameter_count(model), parameters(config.model.architecture)
    assert count == expected, f"the model has {count} parameters, its architecture says {expected}"
    assert isinstance(model, PreTrainedModel)
    return model


def llama_config(architecture: Architecture) -> LlamaConfig:
    """The architecture in transformers' words."""
    return LlamaConfig(
        hidden_size=architecture.hidden_size,
        intermediate_size=architecture.intermediate_size,
        num_hidden_layers=architecture.layers,
        num_attention_heads=architecture.attention_heads,
        num_key_value_heads=architecture.key_value_heads,
        head_dim=architecture.head_dim,
        vocab_size=architecture.vocabulary_size,
        max_position_embeddings=architecture.max_positions,
        rope_parameters={"rope_type": "default", "rope_theta": architecture.rope_theta},
        tie_word_embeddings=architecture.tied_embeddings,
        use_cache=False,
        bos_token_id=None,
        eos_token_id=None,
    )


def parameter_count(model: torch.nn.Module) -> int:
    """Parameters of the whole model; a ZeRO-3 shard knows the number of its whole (`ds_numel`)."""
    return sum(int(getattr(parameter, "ds_numel", parameter.numel())) for parameter in model.parameters())
