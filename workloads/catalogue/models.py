"""Models, by architecture alone: weights are random, so no licence and no download stands before a run.

Architectures: the published configurations of the models' own cards. Parameter counts are not typed here,
trainer.flops computes them.
"""

from dataclasses import dataclass

from trainer.config import Architecture, ModelConfig


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model and what its tokenizer asks of the user."""

    config: ModelConfig
    gated_tokenizer: bool
    """True: reading the tokenizer needs a Hugging Face token of an account that accepted its licence."""

    @property
    def name(self) -> str:
        """The name of run.model."""
        return self.config.name


LLAMA_3_8B = Model(
    config=ModelConfig(
        name="llama-3-8b",
        architecture=Architecture(
            hidden_size=4096,
            intermediate_size=14336,
            layers=32,
            attention_heads=32,
            key_value_heads=8,
            head_dim=128,
            vocabulary_size=128256,
            tied_embeddings=False,
            max_positions=8192,
            rope_theta=500000.0,
        ),
        tokenizer="meta-llama/Meta-Llama-3-8B",
    ),
    gated_tokenizer=True,
)
LLAMA_3_2_1B = Model(
    config=ModelConfig(
        name="llama-3.2-1b",
        architecture=Architecture(
            hidden_size=2048,
            intermediate_size=8192,
            layers=16,
            attention_heads=32,
            key_value_heads=8,
            head_dim=64,
            vocabulary_size=128256,
            tied_embeddings=True,
            max_positions=131072,
            rope_theta=500000.0,
        ),
        tokenizer="meta-llama/Llama-3.2-1B",
    ),
    gated_tokenizer=True,
)
TINY = Model(
    config=ModelConfig(
        name="tiny",
        architecture=Architecture(
            hidden_size=128,
            intermediate_size=352,
            layers=2,
            attention_heads=4,
            key_value_heads=4,
            head_dim=32,
            vocabulary_size=1000,
            tied_embeddings=False,
            max_positions=2048,
            rope_theta=10000.0,
        ),
        tokenizer=None,
    ),
    gated_tokenizer=False,
)

MODELS: tuple[Model, ...] = (LLAMA_3_8B, LLAMA_3_2_1B, TINY)


def find_model(name: str) -> Model | None:
    """The model of that name, or None."""
    return next((m for m in MODELS if m.name == name), None)
