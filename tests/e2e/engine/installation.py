"""An installation of Pulumi as users have it: one folder of binaries, one PULUMI_HOME with provider plugins.

The engine looks for its bundled plugins (language host, dynamic provider) beside its own binary, and warns at each
run where it finds them elsewhere; so the binary gets a name in a folder of ours.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from tests.source import ROOT

PROVIDERS: Mapping[str, Sequence[str]] = {
    f"pulumi-{name}": (sys.executable, "-m", f"tests.e2e.providers.{name}") for name in ("aws", "eks", "kubernetes")
}
"""Distribution, whose version the plugin bears, to the command of its stand-in."""

_EXECUTOR = "pulumi-language-python-exec"
_DYNAMIC = "pulumi-resource-pulumi-python"


@dataclass(frozen=True, kw_only=True)
class Installation:
    """`binaries` holds `pulumi` and its bundled plugins; `home` is PULUMI_HOME."""

    binaries: Path
    home: Path

    @property
    def pulumi(self) -> Path:
        """The command."""
        return self.binaries / "pulumi"


def install(folder: Path, pulumi: Path, sdk: Path, providers: Mapping[str, Sequence[str]] = PROVIDERS) -> Installation:
    """Lay an installation in `folder`. `sdk` is the Go module github.com/pulumi/pulumi/sdk/v3 of the same release.

    Out of it come the two scripts that the release ships with the engine: the executor of Python programs and the
    launcher of dynamic providers.
    """
    installation = Installation(binaries=folder / "bin", home=folder / "home")
    installation.binaries.mkdir(parents=True)
    _place_binary(pulumi, installation.pulumi)
    for source in (sdk / "python" / "cmd" / _EXECUTOR, sdk / "python" / "dist" / _DYNAMIC):
        _place_script(source, installation.binaries / source.name)
    host = [
        sys.executable,
        "-m",
        "tests.e2e.engine.language_host",
        "--executor",
        str(installation.binaries / _EXECUTOR),
    ]
    _place_launcher(installation.binaries / "pulumi-language-python", host)
    for distribution, command in providers.items():
        name = distribution.removeprefix("pulumi-")
        place = installation.home / "plugins" / f"resource-{name}-v{version(distribution)}"
        place.mkdir(parents=True)
        _place_launcher(place / f"pulumi-resource-{name}", command)
    return installation


def _place_binary(source: Path, target: Path) -> None:
    """By a hard link: the engine follows symbolic ones to the folder that it looks in."""
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copy2(source, target)


def _place_script(source: Path, target: Path) -> None:
    target.write_bytes(source.read_bytes())
    target.chmod(0o755)


def _place_launcher(target: Path, command: Sequence[str]) -> None:
    """A stand-in is a module of this checkout, so it needs the way to it."""
    words = shlex.join([*command])
    target.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))}\nexport PYTHONPATH\nexec {words} "$@"\n')
    target.chmod(0o755)
