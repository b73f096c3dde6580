"""The words and the strictness that every file of the contract shares."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

Backend = Literal["nccl", "gloo"]
"""What carries the collectives: NCCL between GPUs, gloo between CPU ranks."""

LinkClass = Literal["same-pod", "same-node", "other-node"]
"""Relation of two ranks: in one pod; on one node in two pods; on two nodes."""

LINK_CLASSES: tuple[LinkClass, ...] = ("same-pod", "same-node", "other-node")


class Contract(BaseModel):
    """Frozen, strict, and deaf to nothing: an unknown key is an error."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)
