"""Make an environment of this repository: `python3 -m tools.set_up program|lab`.

`program` is .venv: the Pulumi program, the command line, the development tools; no torch.
`lab` is .venv-lab: torch, the trainer's packages and the command line. With --python it stands on an
interpreter that already has torch: only what that one lacks is fetched, and where nothing lacks, no network
is needed.

Runs on a bare Python: standard library only.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tools.pins import Pin, lacking, normal, read_lock, read_requirements, unmet
from tools.uv import find_uv

ROOT = Path(__file__).resolve().parent.parent
STAMP = ".made-from.json"
SUPPORTED = ("3.11", "3.12")


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A folder, what it must hold, and the lock that fills it."""

    folder: Path
    requirements: Path
    lock: Path
    needs_torch: bool

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.folder / "bin" / "python")


ENVIRONMENTS = {
    "program": Environment(
        folder=ROOT / ".venv",
        requirements=ROOT / "requirements-dev.txt",
        lock=ROOT / "requirements-dev.lock",
        needs_torch=False,
    ),
    "lab": Environment(
        folder=ROOT / ".venv-lab",
        requirements=ROOT / "requirements-lab.txt",
        lock=ROOT / "requirements-lab.lock",
        needs_torch=True,
    ),
}


def main(argv: list[str]) -> int:
    """Make or refresh the environment; nothing happens when it is what its lock says."""
    parser = argparse.ArgumentParser(prog="set_up", description="Make an environment of this repository.")
    parser.add_argument("environment", choices=ENVIRONMENTS)
    parser.add_argument("--python", default="", help="the interpreter to stand on, with torch or without")
    parser.add_argument("--also", nargs="*", default=[], help="packages of requirements-dev.lock to add")
    options = parser.parse_args(argv)
    try:
        make(ENVIRONMENTS[options.environment], _interpreter(options.python), options.also)
    except ValueError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    return 0


def make(environment: Environment, python: str, also: list[str]) -> None:
    """Bring the folder to what its lock says; `also` are development tools to add."""
    digest = hashlib.sha256(environment.lock.read_bytes()).hexdigest()
    wanted = {"lock": digest, "python": python, "also": ""}
    stamp = _read_stamp(environment)
    if {**stamp, "also": ""} != wanted:
        stamp = {}
        has_torch = environment.needs_torch and "torch" in installed(python)
        make_here = _overlay if has_torch else _install
        make_here(environment, python)
        (environment.folder / STAMP).write_text(json.dumps(wanted))
    dev_lock = ENVIRONMENTS["program"].lock
    tools = hashlib.sha256(dev_lock.read_bytes() + " ".join(also).encode()).hexdigest()
    if also and stamp.get("also") != tools:
        _add(environment, python, lacking(installed(environment.python), also, read_lock(dev_lock.read_text())))
        (environment.folder / STAMP).write_text(json.dumps({**wanted, "also": tools}))


def installed(python: str) -> dict[str, str]:
    """Name and version of every distribution that an interpreter sees."""
    code = "import importlib.metadata as m; [print(d.name, d.version) for d in m.distributions() if d.name]"
    pairs = [line.split() for line in _ask(python, code).splitlines()]
    # The first of two versions on the path is the one that gets imported.
    return {normal(name): version for name, version in reversed(pairs)}


def _interpreter(given: str) -> str:
    # Asked by an environment of its own, what that one stands on: an environment cannot be made anew from itself.
    python = shutil.which(given or getattr(sys, "_base_executable", sys.executable))
    if python is None:
        raise ValueError(f"PYTHON={given}: no such interpreter; give its full path")
    version = _ask(python, "import sys; print(*sys.version_info[:2], sep='.')").strip()
    if version not in SUPPORTED:
        raise ValueError(
            f"{python} is Python {version}, and topolab runs on {' and '.join(SUPPORTED)}; "
            "install one of them, or name it: make PYTHON=/path/to/python3.12 ..."
        )
    return str(Path(python).absolute())


def _ask(python: str, code: str) -> str:
    answer = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if answer.returncode:
        last = (answer.stderr.strip().splitlines() or ["no word"])[-1]
        raise ValueError(f"{python} doesn't run ({last}); give a working interpreter")
    return answer.stdout


def _read_stamp(environment: Environment) -> dict[str, str]:
    try:
        stamp: dict[str, str] = json.loads((environment.folder / STAMP).read_text())
    except (OSError, json.JSONDecodeError):
        return {}
    return stamp


def _install(environment: Environment, python: str) -> None:
    _say(f"setting up {environment.folder.name} from {environment.lock.name}")
    uv = find_uv(python)
    _run([uv, "venv", "--quiet", "--clear", "--python", python, str(environment.folder)])
    options = ["--quiet", "--require-hashes", "--compile-bytecode", "--python", environment.python]
    _run([uv, "pip", "sync", *options, str(environment.lock)])


def _overlay(environment: Environment, python: str) -> None:
    have = installed(python)
    _say(f"setting up {environment.folder.name} over {python}, which has torch {have['torch']}")
    _lay_over(environment, python)
    ranges = read_requirements(environment.requirements)
    pins = lacking(have, unmet(have, ranges), read_lock(environment.lock.read_text()))
    _add(environment, python, pins)
    still = unmet(installed(environment.python), ranges)
    if still:
        versions = ", ".join(f"{n} {have.get(n, 'missing')} (needed: {ranges[n]})" for n in still)
        raise ValueError(f"{python} doesn't serve: {versions}; upgrade there, or leave PYTHON out")


def _lay_over(environment: Environment, python: str) -> None:
    """An environment that sees all that the interpreter sees; its own packages come first."""
    shutil.rmtree(environment.folder, ignore_errors=True)
    _run([python, "-m", "venv", "--without-pip", str(environment.folder)])
    own = _ask(environment.python, "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    # venv's own --system-site-packages would skip an interpreter that is a virtual environment itself.
    under = _ask(python, "import sys; [print(p) for p in sys.path if p.endswith('-packages')]").splitlines()
    lines = [f"import site; site.addsitedir({path!r})" for path in under]
    Path(own, "_under.pth").write_text("\n".join(lines) + "\n")
    torchrun = environment.folder / "bin" / "torchrun"
    torchrun.write_text('#!/bin/sh\nexec "$(dirname "$0")/python" -m torch.distributed.run "$@"\n')
    torchrun.chmod(0o755)


def _add(environment: Environment, python: str, pins: list[Pin]) -> None:
    if not pins:
        return
    _say(f"adding {', '.join(p.name for p in pins)} to {environment.folder.name}")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as lock:
        lock.write("\n".join(line for pin in pins for line in pin.lines) + "\n")
        lock.flush()
        options = ["--quiet", "--no-deps", "--require-hashes", "--compile-bytecode"]
        _run([find_uv(python), "pip", "install", *options, "--python", environment.python, "-r", lock.name])


def _run(command: list[str]) -> None:
    if subprocess.run(command, check=False).returncode:
        raise ValueError(f"`{' '.join(command[:3])}` failed (see above); packages come from the network: is it there?")


def _say(sentence: str) -> None:
    print(f"set-up: {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
