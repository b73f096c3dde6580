"""Brings a run's data to this machine before its pods start: they have no route out."""

import subprocess
from pathlib import Path
from tempfile import NamedTemporaryFile

from trainer.config import TrainConfig


def fetch_data(config: TrainConfig, cache: Path, interpreter: Path) -> None:
    """Run `trainer.fetch` with the lab's interpreter, which has the trainer's packages; ValueError says why not."""
    with NamedTemporaryFile("w", suffix=".json") as file:
        file.write(config.model_dump_json())
        file.flush()
        command = [str(interpreter), "-m", "trainer.fetch", "--config", file.name, "--cache", str(cache)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        last = (result.stderr.strip() or result.stdout.strip() or "no word").splitlines()[-1]
        raise ValueError(f"data.source {config.data.source} can't be read on this machine: {last}")
