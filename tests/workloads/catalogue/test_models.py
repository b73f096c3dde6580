"""Parameter counts follow from the architecture, as counted tensor by tensor."""

import pytest

from trainer.config import Architecture
from trainer.flops import flops_per_token, matmul_parameters, mfu, parameters
from workloads.catalogue.models import LLAMA_3_2_1B, LLAMA_3_8B, MODELS, TINY, find_model


def tensor_by_tensor(a: Architecture) -> int:
    shapes = [(a.vocabulary_size, a.hidden_size), (a.hidden_size, 1)]
    if not a.tied_embeddings:
        shapes.append((a.vocabulary_size, a.hidden_size))
    for _ in range(a.layers):
        shapes += [
            (a.attention_heads * a.head_dim, a.hidden_size),
            (a.key_value_heads * a.head_dim, a.hidden_size),
            (a.key_value_heads * a.head_dim, a.hidden_size),
            (a.hidden_size, a.attention_heads * a.head_dim),
            (a.intermediate_size, a.hidden_size),
            (a.intermediate_size, a.hidden_size),
            (a.hidden_size, a.intermediate_size),
            (a.hidden_size, 1),
            (a.hidden_size, 1),
        ]
    return sum(rows * columns for rows, columns in shapes)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_parameters_equal_the_sum_of_the_tensors(model):
    architecture = model.config.architecture
    assert parameters(architecture) == tensor_by_tensor(architecture)


def test_published_parameter_counts():
    # 8,030,261,248 stands in the seeds' log; 1,235,814,400 on the model's card.
    assert parameters(LLAMA_3_8B.config.architecture) == 8_030_261_248
    assert parameters(LLAMA_3_2_1B.config.architecture) == 1_235_814_400
    assert matmul_parameters(LLAMA_3_8B.config.architecture) == 7_504_924_672


def test_a_tied_head_still_multiplies():
    architecture = LLAMA_3_2_1B.config.architecture
    assert matmul_parameters(architecture) == parameters(architecture)


@pytest.mark.parametrize(("tokens", "gflop"), [(70, 45.1), (512, 45.8), (2048, 48.3), (8192, 57.9)])
def test_flops_per_token_of_the_8b_model(tokens, gflop):
    assert flops_per_token(LLAMA_3_8B.config.architecture, tokens) / 1e9 == pytest.approx(gflop, abs=0.06)


def test_mfu_reproduces_a_published_figure():
    # torchtitan: 6,667 tokens/s/GPU at 8192 on H100 is 39.0%.
    rate = 6667 * flops_per_token(LLAMA_3_8B.config.architecture, 8192)
    assert mfu(rate, 989e12) == pytest.approx(0.390, abs=0.001)


def test_mfu_of_an_unknown_chip_is_absent():
    assert mfu(1e12, None) is None


def test_models_are_found_by_name_and_only_so():
    assert find_model("tiny") is TINY
    assert find_model("tiny ") is None
