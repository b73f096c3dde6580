"""Kernels are chosen by chip and by what is installed, and the record can say why."""

import pytest
import torch

from trainer.attention import torch_kernel
from trainer.decoder_ops import Ops
from trainer.kernels import choose_kernels

pytestmark = pytest.mark.torch

GPU = torch.device("cuda", 0)


def _found(program: str) -> str:
    return f"/usr/bin/{program}"


def test_a_cpu_runs_plain_torch() -> None:
    kernels = choose_kernels(torch.device("cpu"))
    assert kernels.ops == Ops()
    assert kernels.chosen == {"elementwise": "torch", "attention": "torch"}


def test_without_triton_and_flash_attention_torch_computes_and_says_why() -> None:
    kernels = choose_kernels(GPU, missing=lambda _: True, program=_found, capability=lambda _: (9, 0))
    assert (kernels.ops, kernels.attention) == (Ops(), torch_kernel)
    assert kernels.chosen == {
        "elementwise": "torch.compile, because triton isn't installed",
        "attention": "torch, because flash-attn-4 isn't installed",
    }


def test_a_chip_that_flash_attention_4_isn_t_made_for_gets_torch_s_attention() -> None:
    kernels = choose_kernels(GPU, missing=lambda name: name == "triton", program=_found, capability=lambda _: (8, 9))
    assert kernels.attention == torch_kernel
    assert kernels.chosen["attention"] == "torch, because FlashAttention-4 isn't made for compute capability 8"


def test_without_a_c_compiler_the_run_is_refused_before_it_trains() -> None:
    with pytest.raises(ValueError, match="Triton wants one of gcc, clang: install a C compiler"):
        choose_kernels(GPU, program=lambda _: None)


def test_triton_s_kernels_stand_in_for_four_parts() -> None:
    pytest.importorskip("triton")
    kernels = choose_kernels(GPU, missing=lambda name: name != "triton", program=_found, capability=lambda _: (9, 0))
    assert kernels.chosen["elementwise"].startswith("triton 3")
    replaced = {name for name in Ops.__dataclass_fields__ if getattr(kernels.ops, name) != getattr(Ops(), name)}
    assert replaced == {"norm_backward", "rotate", "rotate_backward", "swiglu_backward"}
