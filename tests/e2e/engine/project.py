"""A user's checkout of the program: its tracked files, really copied, and the environment linked."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.source import ROOT, tracked_files

_FOLDERS = ("infra", "workloads", "trainer")
_FILES = ("Pulumi.yaml", "__main__.py")


def copy_project(folder: Path) -> Path:
    """Copy what `pulumi up` needs into `folder`; returns it. A person's own edits of stack files come along."""
    for source in _program_files():
        target = folder / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    link_environment(folder)
    return folder


def link_environment(folder: Path) -> None:
    """Let `virtualenv: .venv` of Pulumi.yaml lead to the environment that runs this test."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".venv").symlink_to(sys.prefix)


def _program_files() -> Iterator[Path]:
    for path in tracked_files():
        parts = path.relative_to(ROOT).parts
        if parts[0] in _FOLDERS or (len(parts) == 1 and _is_program_file(path.name)):
            yield path


def _is_program_file(name: str) -> bool:
    return name in _FILES or ((name.startswith(("Pulumi.", "requirements"))) and name.endswith((".yaml", ".txt")))
