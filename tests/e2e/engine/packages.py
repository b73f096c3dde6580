"""Which Pulumi packages an environment holds, as the real host tells the engine before each run.

Run by the program's interpreter (`python packages.py`), so it needs the standard library alone: prints JSON, all
distributions with their versions, and the plugins that the packages among them name in pulumi-plugin.json.
"""

import json
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any


def plugin_of(distribution: Distribution) -> dict[str, str] | None:
    """The provider plugin of a package: name and version; None where it has none."""
    module = distribution.metadata["Name"].replace("-", "_")
    path = Path(str(distribution.locate_file(f"{module}/pulumi-plugin.json")))
    if not path.is_file():
        return None
    described: dict[str, Any] = json.loads(path.read_text())
    if not described.get("resource"):
        return None
    return {"name": described["name"], "version": described.get("version") or distribution.version}


def survey() -> dict[str, Any]:
    """All that is installed beside this interpreter."""
    installed = sorted(distributions(), key=lambda one: str(one.metadata["Name"]))
    return {
        "distributions": {str(one.metadata["Name"]).lower().replace("_", "-"): one.version for one in installed},
        "plugins": [plugin for one in installed if (plugin := plugin_of(one))],
    }


if __name__ == "__main__":
    json.dump(survey(), sys.stdout)
