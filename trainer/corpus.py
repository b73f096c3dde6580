"""Real English text that every CPython carries: pydoc's topics and the docstrings of the standard library.

About 2 MB in 7,700 texts; it differs with the Python version, so a run records its hash.
"""

import ast
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics

UNREAD_FOLDERS = frozenset(
    {"test", "tests", "idlelib", "site-packages", "lib2to3", "__pycache__", "ensurepip", "turtledemo"}
)
"""Tests and vendored parts: their docstrings are terse or missing, or differ between distributors."""

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def embedded_texts() -> list[str]:
    """All texts in a fixed order."""
    return [*_topics(), *_docstrings(Path(sysconfig.get_path("stdlib")))]


def _topics() -> Iterator[str]:
    for name in sorted(topics):
        yield topics[name]


def _docstrings(folder: Path) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name not in UNREAD_FOLDERS:
            yield from _docstrings(path)
        elif path.suffix == ".py":
            yield from _docstrings_of(path)


def _docstrings_of(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return  # some files of the library are samples of bad source
    for node in ast.walk(tree):
        text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
        if text:
            yield text
