"""`python -m trainer.fetch --config FILE --cache FOLDER`: read and encode the run's data before its pods start.

The lab's pods have no route out, so what comes from a hub or a bucket is brought to the cache on the host.
A token for gated tokenizers is taken where the Hugging Face libraries look for it.
"""

import argparse
import sys
from pathlib import Path

from trainer.config import read_config
from trainer.data import load_data


def main() -> int:
    """Load the data once; a ValueError becomes one sentence and exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m trainer.fetch", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the run's TrainConfig, as JSON")
    parser.add_argument("--cache", type=Path, required=True, help="folder that the pods will share")
    arguments = parser.parse_args()
    try:
        data = load_data(read_config(arguments.config), arguments.cache, None)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{data.facts.samples} samples of {data.facts.tokens} tokens, sha256 {data.facts.sha256[:12]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
