"""Tells `python -m trainer.prove` of a step, from inside of anybody's training loop. Two lines:

    from trainer.mark import mark
    mark(step, loss=loss.item(), tokens=batch.numel())     # after each optimizer step, on every rank

Outside of `trainer.prove` it does nothing, so the lines may stay. Only the standard library is imported.
"""

import json
import os
import time
from pathlib import Path

FOLDER_VARIABLE = "TOPOLAB_MARKS"
"""Set by `trainer.prove`: where each rank writes its marks."""


def mark(step: int, *, loss: float | None = None, tokens: int | None = None) -> None:
    """Say that this rank ended an optimizer step just now.

    `tokens`: trained in this step by this rank, padding left out. The first mark starts the clock of the second
    step. On a GPU, `loss.item()` waits for the step's end; without it a mark tells when the step was queued.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return
    line = json.dumps({"step": step, "unix_s": time.time(), "loss": loss, "tokens": tokens})
    rank = int(os.environ.get("RANK", "0"))
    with (Path(folder) / f"rank-{rank:05d}.jsonl").open("a") as file:
        file.write(line + "\n")
