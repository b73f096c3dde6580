"""The real helm, one command at a time, with a kubeconfig and values of its own that no command line shows."""

import base64
import gzip
import json
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.children import bound_to_this_thread
from tests.e2e.providers.kubernetes_cluster import Cluster
from tests.e2e.providers.serving import RefusedError

_LOOK_EVERY_S = 0.2
_STOP_S = 20.0
_NOISE = re.compile(r"WARNING:|[WIE]\d{4} ")
"""Lines of helm's Kubernetes client (klog), and its remark on the kubeconfig's mode."""


class HelmError(RefusedError):
    """What helm said."""


@dataclass(frozen=True, kw_only=True)
class Helm:
    """`binary`: helm. `home`: its caches. `stopping`: a running command is told to end, and marks its release failed.

    It dies with this process, as the real provider's does, which has helm inside.
    """

    binary: Path
    home: Path
    kubeconfig: str
    context: str | None
    stopping: threading.Event

    def run(self, *arguments: str, values: Mapping[str, Any] | None = None) -> str:
        """What the command prints; HelmError with what it complains of."""
        self.home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.home) as name:
            folder = Path(name)
            command = [str(self.binary), *arguments, "--kubeconfig", str(_private(folder / "config", self.kubeconfig))]
            if self.context:
                command += ["--kube-context", self.context]
            if values is not None:
                # JSON is YAML, and keeps apart what YAML would guess at.
                command += ["--values", str(_private(folder / "values.json", json.dumps(values)))]
            return self._finished(command, folder)

    def _finished(self, command: list[str], folder: Path) -> str:
        with (folder / "out").open("w+") as out, (folder / "err").open("w+") as err:
            process = subprocess.Popen(
                bound_to_this_thread(command),
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
            self._await(process)
            out.seek(0)
            err.seek(0)
            if process.returncode:
                said = _complaint(err.read()) or f"ended with code {process.returncode} and said nothing"
                raise HelmError(f"helm {command[1]}: {said}")
            return out.read()

    def _await(self, process: "subprocess.Popen[bytes]") -> None:
        told = False
        while True:
            try:
                process.wait(_STOP_S if told else _LOOK_EVERY_S)
            except subprocess.TimeoutExpired:
                if told:
                    process.kill()
                elif self.stopping.is_set():
                    process.terminate()
                    told = True
            else:
                return

    def _environment(self) -> dict[str, str]:
        homes = {f"HELM_{kind}_HOME": str(self.home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        return {"PATH": os.defpath, "HOME": str(self.home), **homes}


def record(cluster: Cluster, namespace: str, name: str) -> dict[str, Any] | None:
    """The newest revision, as helm keeps it in Secrets: info, chart, config, manifest; None when there is none."""
    selector = f"owner=helm,name={name}"
    kept = cluster.listed("v1", "Secret", namespace, selector)
    if not kept:
        return None
    newest = max(kept, key=lambda secret: int(secret["metadata"]["labels"]["version"]))
    packed = base64.b64decode(base64.b64decode(newest["data"]["release"]))
    found: dict[str, Any] = json.loads(gzip.decompress(packed))
    return found


def resource_names(manifest: str) -> dict[str, list[str]]:
    """Names of a release's objects by "kind/apiVersion", as the real provider lists them."""
    names: dict[str, list[str]] = {}
    # Libyaml's loader: CRDs are long.
    for document in yaml.load_all(manifest, Loader=yaml.CSafeLoader):
        if document:
            metadata = document["metadata"]
            named = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
            names.setdefault(f"{document['kind']}/{document['apiVersion']}", []).append(named)
    return {key: sorted(found) for key, found in sorted(names.items())}


def _private(path: Path, text: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def _complaint(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not _NOISE.match(line)]
    return " ".join(lines).removeprefix("Error: ") or text.strip()
