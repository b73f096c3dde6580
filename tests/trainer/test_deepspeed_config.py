"""DeepSpeed's dictionary follows from the config alone."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.trainer.launching import RECIPE, ZERO_3, tiny_config
from trainer.deepspeed_config import deepspeed_config


def _config(**zero: Any) -> dict[str, Any]:
    recipe = RECIPE.model_copy(update={"zero": ZERO_3.model_copy(update=zero)})
    return deepspeed_config(tiny_config(recipe=recipe))


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _leaves(inner)
    else:
        yield value


@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("offload", [False, True])
def test_nothing_is_left_to_auto(stage: int, offload: bool) -> None:
    leaves = list(_leaves(_config(stage=stage, offload_optimizer=offload)))
    assert "auto" not in leaves
    assert None not in leaves


def test_batch_sizes_agree_as_deepspeed_demands() -> None:
    recipe = RECIPE.model_copy(update={"micro_batch": 3, "accumulation": 5})
    config = deepspeed_config(tiny_config(recipe=recipe, pods=2, ranks_per_pod=4))
    assert config["train_micro_batch_size_per_gpu"] == 3
    assert config["gradient_accumulation_steps"] == 5
    assert config["train_batch_size"] == 3 * 5 * 8


def test_the_seeds_p4d_values_arrive_under_deepspeed_s_names() -> None:
    zero = _config(
        offload_optimizer=True,
        offload_parameters=True,
        sub_group_size=100_000_000,
        reduce_bucket_size=50_000_000,
        prefetch_bucket_size=50_000_000,
        persistence_threshold=40_960,
        max_live_parameters=100_000_000,
        max_reuse_distance=100_000_000,
        gather_16bit_weights_on_save=True,
    )["zero_optimization"]
    assert zero == {
        "stage": 3,
        "overlap_comm": True,
        "contiguous_gradients": True,
        "reduce_scatter": True,
        "reduce_bucket_size": 50_000_000,
        "sub_group_size": 100_000_000,
        "offload_optimizer": {"device": "cpu", "pin_memory": True},
        "offload_param": {"device": "cpu", "pin_memory": True},
        "stage3_prefetch_bucket_size": 50_000_000,
        "stage3_param_persistence_threshold": 40_960,
        "stage3_max_live_parameters": 100_000_000,
        "stage3_max_reuse_distance": 100_000_000,
        "stage3_gather_16bit_weights_on_model_save": True,
    }


@pytest.mark.parametrize("stage", [1, 2])
def test_stages_that_keep_parameters_whole_have_no_stage_3_keys(stage: int) -> None:
    zero = _config(stage=stage)["zero_optimization"]
    assert not [key for key in zero if key.startswith("stage3")]
    assert zero["allgather_bucket_size"] == zero["reduce_bucket_size"] == ZERO_3.reduce_bucket_size


def test_precision_and_clipping_come_from_the_recipe() -> None:
    config = deepspeed_config(tiny_config(recipe=RECIPE.model_copy(update={"gradient_clipping": 0.5})))
    assert config["bf16"] == {"enabled": True}
    assert config["gradient_clipping"] == 0.5


def test_parameters_can_only_be_offloaded_where_they_are_sharded() -> None:
    with pytest.raises(ValueError, match="recipe test: offload_parameters is true with ZeRO stage 2, but only"):
        _config(stage=2, offload_parameters=True)
