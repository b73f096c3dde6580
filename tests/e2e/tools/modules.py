"""Files of published Go modules, by the versions that the go.mod files pin: CRDs, charts, manifests."""

import json
from functools import cache
from pathlib import Path

from tests.e2e.tools.go import Go, ToolsError, find_go
from tests.e2e.tools.groups import FILES, GROUPS, SOURCES, pins


@cache
def module_path(module: str) -> Path:
    """Folder of the module in Go's module cache, downloaded where it isn't there. It can't be written to."""
    return download(find_go(), module)


def download(go: Go, module: str) -> Path:
    """As `module_path`, with a given toolchain. Checked against the go.sum beside the pin."""
    name, version = pinned(module)
    asked = go.run("mod", "download", "-json", f"{module}@{version}", folder=SOURCES / name)
    try:
        answer = json.loads(asked.stdout[asked.stdout.index("{") :])
    except ValueError:
        answer = {"Error": asked.stdout.strip()}
    if "Dir" not in answer:
        reason = " ".join(str(answer.get("Error", "no folder in the answer")).split())
        raise ToolsError(f"{module} {version} can't be had: {reason}")
    return Path(answer["Dir"])


def pinned(module: str) -> tuple[str, str]:
    """The folder whose go.mod names the module, and the version; ToolsError where none does, or two differ."""
    known = {name: pins(name)[module] for name in (*(g.name for g in GROUPS), FILES) if module in pins(name)}
    if len(set(known.values())) != 1:
        said = ", ".join(f"{name}: {version}" for name, version in known.items()) or "none"
        raise ToolsError(f"{module} has no one version in the go.mod files ({said}); pin it in {FILES}/go.mod")
    return next(iter(known.items()))
