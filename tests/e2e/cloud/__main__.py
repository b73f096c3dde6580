"""`python -m tests.e2e.cloud [PORT] [--folder SITE]`: the fake account until Ctrl-C."""

import argparse
import contextlib
import signal
from pathlib import Path

from tests.e2e.cloud.server import listen
from tests.e2e.own_folder import own_folder


def main() -> None:
    """Serve; operations and faults lie in the folder of the site."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.cloud", description="A fake AWS account over HTTP.")
    parser.add_argument("port", type=int, nargs="?", default=0, help="TCP port of 127.0.0.1; left out: a free one")
    parser.add_argument("--folder", type=Path, help="the site's folder: operations.jsonl, faults.json, site.json")
    arguments = parser.parse_args()
    # As on Ctrl-C: the folder goes.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    given = contextlib.nullcontext(arguments.folder) if arguments.folder else own_folder("topolab-cloud-")
    with given as folder:
        try:
            server = listen(arguments.port, folder)
            print(
                f"export AWS_ENDPOINT_URL=http://127.0.0.1:{server.server_port}  # operations in {folder}", flush=True
            )
            server.serve_forever()
        except KeyboardInterrupt:
            print("the account is gone")


if __name__ == "__main__":
    main()
