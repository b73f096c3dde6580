"""`python -m workloads`, which `./topo` calls."""

import sys

from workloads.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
