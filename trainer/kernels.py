"""Which kernels compute a decoder on this machine: the fastest that are there, and in words why not a faster one."""

import shutil
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from trainer.attention import Kernel, torch_kernel
from trainer.decoder import Kernels
from trainer.decoder_ops import Ops

FLASH = "flash_attn.cute.interface"
"""FlashAttention-4's module: 1.12 times cuDNN's speed on an H200 at 8192 tokens (docs/diary, 2026-11-21)."""
FLASH_PACKAGE = "flash-attn-4"
C_COMPILERS = ("gcc", "clang")
"""Programs that Triton looks for, to build the launcher of each kernel."""
FLASH_CHIPS = (9, 10)
"""Major compute capabilities that FlashAttention-4 was written for: Hopper and Blackwell of data centres."""


def choose_kernels(
    device: torch.device,
    *,
    missing: Callable[[str], bool] = lambda name: find_spec(name) is None,
    program: Callable[[str], str | None] = shutil.which,
    capability: Callable[[torch.device], tuple[int, int]] = torch.cuda.get_device_capability,
) -> Kernels:
    """The kernels for tensors on this device.

    `missing` says whether a top-level package isn't installed, `program` where one is, `capability` what the chip
    can (CUDA's numbers). Raises ValueError where a GPU's kernels can't be compiled.
    """
    if device.type != "cuda":
        return Kernels(ops=Ops(), attention=torch_kernel, chosen={"elementwise": "torch", "attention": "torch"})
    if not any(map(program, C_COMPILERS)):
        raise ValueError(
            "recipe.engine: direct compiles its kernels where they run, and Triton wants one of "
            f"{', '.join(C_COMPILERS)}: install a C compiler"
        )
    ops, elementwise = _elementwise(missing)
    attention, how = _attention(capability(device)[0], missing)
    return Kernels(ops=ops, attention=attention, chosen={"elementwise": elementwise, "attention": how})


def _elementwise(missing: Callable[[str], bool]) -> tuple[Ops, str]:
    if missing("triton"):
        return Ops(), "torch.compile, because triton isn't installed"
    ops: Ops = import_module("trainer.decoder_triton").OPS
    return ops, f"triton {_version('triton')}, the rest by torch.compile"


def _attention(capability: int, missing: Callable[[str], bool]) -> tuple[Kernel, str]:
    if capability not in FLASH_CHIPS:
        return torch_kernel, f"torch, because FlashAttention-4 isn't made for compute capability {capability}"
    if missing("flash_attn"):
        return torch_kernel, f"torch, because {FLASH_PACKAGE} isn't installed"
    return _flash(import_module(FLASH).flash_attn_func), f"{FLASH_PACKAGE} {_version(FLASH_PACKAGE)}"


def _flash(function: Any) -> Kernel:
    def kernel(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        made = function(q, k, v, causal=True)
        out: Tensor = made[0] if isinstance(made, tuple) else made
        return out

    return kernel


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"
