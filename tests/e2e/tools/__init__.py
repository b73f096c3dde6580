"""The real programs of the proof, built from their published Go modules; and the files that these modules hold."""

from tests.e2e.tools.build import tool_folder
from tests.e2e.tools.modules import module_path

__all__ = ["module_path", "tool_folder"]
