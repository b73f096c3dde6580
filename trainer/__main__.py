"""`python -m trainer --config FILE`, started by torchrun in every pod of a run."""

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path

from trainer.config import read_config
from trainer.distributed import leave, tell_launcher

UNUSED = ("datasets", "scipy", "sklearn")
"""Packages that transformers imports where it finds them and that training doesn't use: about 3 s of 10 on
two cores. `datasets` is imported where texts come from it."""


def main() -> int:
    """Read the config, then load what trains; the one lazy loading, so that a bad config is told at once."""
    began = time.perf_counter()
    parser = argparse.ArgumentParser(prog="python -m trainer", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the run's TrainConfig, as JSON")
    path: Path = parser.parse_args().config
    try:
        config = read_config(path)
        _hide(UNUSED)
        code: int = import_module("trainer.run").run(config, time.perf_counter() - began)
    except ValueError as error:
        print(error, file=sys.stderr)
        tell_launcher(str(error))
        return 2
    return code


def _hide(packages: tuple[str, ...]) -> None:
    """None in sys.modules makes a package as good as not installed (Python's own rule)."""
    for package in packages:
        sys.modules.setdefault(package, None)  # type: ignore[arg-type]


if __name__ == "__main__":
    leave(main())
