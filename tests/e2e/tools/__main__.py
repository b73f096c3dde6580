"""`python -m tests.e2e.tools`: build what is missing, print the folder of binaries."""

import sys

from tests.e2e.tools.build import tool_folder
from tests.e2e.tools.go import ToolsError


def main() -> int:
    """The folder on stdout; 1 and a sentence on stderr where it can't be made."""
    try:
        print(tool_folder())
    except ToolsError as error:
        print(f"tools: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
