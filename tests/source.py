"""The repository's own Python files, parsed once, for tests about the code itself."""

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("trainer", "workloads", "infra", "tools", "tests")


@dataclass(frozen=True)
class Module:
    """One file."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def where(self) -> str:
        return str(self.path.relative_to(ROOT))

    def imports(self) -> Iterator[tuple[str, int]]:
        """Every module that is imported, anywhere in the file, and the line; `from a import b` is a."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{self.where}:{node.lineno}: a relative import"
                yield from ((name, node.lineno) for name in self._from(node))

    def _from(self, node: ast.ImportFrom) -> set[str]:
        module = node.module or ""
        # `from package import module` imports the module.
        return {
            f"{module}.{a.name}" if (ROOT / module.replace(".", "/") / f"{a.name}.py").exists() else module
            for a in node.names
        }

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node

    def strings(self) -> Iterator[tuple[str, int]]:
        """String constants that are not docstrings."""
        documentation = {id(node) for node in _docstrings(self.tree)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
                yield node.value, node.lineno


@cache
def modules() -> tuple[Module, ...]:
    """Every Python file of the repository."""
    paths = [ROOT / "__main__.py"]
    paths += [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return tuple(_read(path) for path in paths)


def of(*packages: str) -> list[Module]:
    """The modules at or below these dotted names."""
    return [m for m in modules() if any(inside(m.name, package) for package in packages)]


def inside(name: str, package: str) -> bool:
    """Whether a dotted name is the package or lies in it."""
    return name == package or name.startswith(f"{package}.")


def tracked_files() -> list[Path]:
    """Every file that git would carry: tracked, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    names = [name for name in listed.decode().split("\0") if name]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def _read(path: Path) -> Module:
    text = path.read_text()
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(name=name, path=path, text=text, tree=ast.parse(text))


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Bare strings: documentation of modules, classes, functions and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value
