"""The DeepSpeed configuration of a run, computed whole: no value is left to `auto`.

The planner reads it too (memory, bytes), so nothing here imports DeepSpeed.
"""

from trainer.config import RecipeConfig, TrainConfig, ZeroConfig

QUIET = 1_000_000_000
"""Steps between DeepSpeed's own progress lines; the run record has the steps already."""


def deepspeed_config(config: TrainConfig) -> dict[str, object]:
    """DeepSpeed's dictionary for this run; keys are DeepSpeed's own.

    Raises ValueError where the recipe asks for what its ZeRO stage can't do.
    """
    recipe = config.recipe
    return {
        "train_batch_size": config.sequences_per_step,
        "train_micro_batch_size_per_gpu": recipe.micro_batch,
        "gradient_accumulation_steps": recipe.accumulation,
        "gradient_clipping": recipe.gradient_clipping,
        "bf16": {"enabled": True},
        "zero_optimization": _zero(recipe),
        # The optimizer is torch's own AdamW, which DeepSpeed hasn't on its list of tested ones.
        "zero_allow_untested_optimizer": True,
        "steps_per_print": QUIET,
        "wall_clock_breakdown": False,
    }


def _zero(recipe: RecipeConfig) -> dict[str, object]:
    zero = recipe.zero
    if zero.offload_parameters and zero.stage != 3:
        raise ValueError(
            f"recipe {recipe.name}: offload_parameters is true with ZeRO stage {zero.stage}, but only "
            "stage 3 shards parameters; set stage 3 or offload_parameters to false"
        )
    section: dict[str, object] = {
        "stage": zero.stage,
        "overlap_comm": zero.overlap_communication,
        "contiguous_gradients": zero.contiguous_gradients,
        "reduce_scatter": True,
        "reduce_bucket_size": zero.reduce_bucket_size,
        "sub_group_size": zero.sub_group_size,
    }
    if zero.offload_optimizer:
        section["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if zero.offload_parameters:
        section["offload_param"] = {"device": "cpu", "pin_memory": True}
    return section | (_sharded_parameters(zero) if zero.stage == 3 else _whole_parameters(zero))


def _sharded_parameters(zero: ZeroConfig) -> dict[str, object]:
    return {
        "stage3_prefetch_bucket_size": zero.prefetch_bucket_size,
        "stage3_param_persistence_threshold": zero.persistence_threshold,
        "stage3_max_live_parameters": zero.max_live_parameters,
        "stage3_max_reuse_distance": zero.max_reuse_distance,
        "stage3_gather_16bit_weights_on_model_save": zero.gather_16bit_weights_on_save,
    }


def _whole_parameters(zero: ZeroConfig) -> dict[str, object]:
    # Stages 1 and 2 gather updated parameters once a step; one bucket size serves both directions.
    return {"allgather_partitions": True, "allgather_bucket_size": zero.reduce_bucket_size}
