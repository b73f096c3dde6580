"""The kubelet at work, in outer namespaces that end with it; started by `python -m tests.e2e.kubelet`.

    python -m tests.e2e.kubelet.service     Settings as one line of JSON on stdin

The stdin stays open for as long as the kubelet is wanted: its end, even by a kill, ends every pod.
"""

import json
import os
import shutil
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from tests.e2e.cluster.api import Api
from tests.e2e.kubelet.ground import Ground
from tests.e2e.kubelet.machine import share_of
from tests.e2e.kubelet.node_keeper import NodeKeeper
from tests.e2e.kubelet.pod_life import Housing
from workloads.lab import kernel

STOP_GRACE_S = 3.0
"""From SIGTERM to the kill of the pods when the kubelet itself is stopped."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One kubelet, as plain values."""

    kubeconfig: str
    folder: str
    nodes: tuple[str, ...]
    pods_per_node: int
    interpreter: str
    namespaces: bool
    run_as: tuple[int, int] | None

    def to_line(self) -> str:
        """One line of JSON, without its end."""
        return json.dumps(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> Self:
        """The settings of a line that `to_line` wrote."""
        values = json.loads(line)
        values["nodes"] = tuple(values["nodes"])
        values["run_as"] = None if values["run_as"] is None else tuple(values["run_as"])
        return cls(**values)


def main() -> int:
    """Keep the nodes until stdin ends."""
    # Ctrl-C belongs to the launcher, which closes stdin; this process must live to end its pods in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    kernel.die_with_parent()
    settings = Settings.from_line(sys.stdin.readline())
    if not settings.namespaces:
        kernel.adopt_orphans()
    share = share_of(len(settings.nodes), settings.pods_per_node)
    api, housing = Api.of(Path(settings.kubeconfig)), _housing(settings)
    with Ground(namespaces=settings.namespaces) as ground:
        keepers = [NodeKeeper(name, share, api, ground, housing) for name in settings.nodes]
        for keeper in keepers:
            keeper.start()
        while os.read(sys.stdin.fileno(), 1):
            pass
        for keeper in keepers:
            keeper.stop(STOP_GRACE_S)
    return 0


def _housing(settings: Settings) -> Housing:
    folder = Path(settings.folder)
    # What a killed one left.
    shutil.rmtree(folder / "states", ignore_errors=True)
    for name in ("states", "logs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return Housing(
        interpreter=Path(settings.interpreter),
        # A cluster has no dial; on the loopback no link could be told from another.
        environment={"TOPOLAB_LINK_SHAPING": "undialled" if settings.namespaces else "unshaped"},
        run_as=settings.run_as,
        states=folder / "states",
        logs=folder / "logs",
    )


if __name__ == "__main__":
    sys.exit(main())
