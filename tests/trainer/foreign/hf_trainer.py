"""A script around Hugging Face's Trainer, in the manner of its examples' run_clm.py, with topolab's two lines."""

import os
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

from trainer.mark import mark


class Steps(TrainerCallback):  # type: ignore[misc] # transformers has no types here
    def on_step_end(self, args, state, control, **kwargs):  # noqa: ARG002 - a callback's signature
        mark(state.global_step, tokens=4 * 32)


def main() -> None:
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=100, **shape))
    data = [{"input_ids": row, "labels": row} for row in torch.randint(0, 100, (400, 32))]
    arguments = TrainingArguments(
        output_dir=sys.argv[2],
        max_steps=int(sys.argv[1]),
        per_device_train_batch_size=4,
        use_cpu=True,
        ddp_backend="gloo",
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )
    Trainer(model=model, args=arguments, train_dataset=data, callbacks=[Steps()]).train()
    sys.stdout.flush()
    os._exit(0)


main()
