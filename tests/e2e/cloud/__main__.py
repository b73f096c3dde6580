"""`python -m tests.e2e.cloud PORT [--folder SITE]`: the fake account until Ctrl-C."""

import argparse
import tempfile
from pathlib import Path

from tests.e2e.cloud.server import serve


def main() -> None:
    """Serve; operations and faults lie in the folder of the site."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.cloud", description="A fake AWS account over HTTP.")
    parser.add_argument("port", type=int, help="TCP port of 127.0.0.1")
    parser.add_argument("--folder", type=Path, help="the site's folder: operations.jsonl, faults.json, site.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="topolab-cloud-") as temporary:
        folder = arguments.folder or Path(temporary)
        print(f"export AWS_ENDPOINT_URL=http://127.0.0.1:{arguments.port}  # operations in {folder}", flush=True)
        try:
            serve(arguments.port, folder)
        except KeyboardInterrupt:
            print("the account is gone")


if __name__ == "__main__":
    main()
