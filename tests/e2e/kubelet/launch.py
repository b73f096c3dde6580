"""Starts the process kubelet of a site, and finds what its pods printed."""

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.children import Children
from tests.e2e.cluster.api import Api, ApiError, Unreachable
from tests.e2e.site import Site

CHILD = "kubelet"
"""Its name among the children."""

_ROOT = Path(__file__).resolve().parents[3]
_READY_S = 30.0


@dataclass(frozen=True)
class Kubelet:
    """One that runs."""

    nodes: tuple[str, ...]
    folder: Path

    def log_of(self, namespace: str, pod: str) -> str:
        """What a pod printed so far."""
        path = self.folder / "logs" / f"{namespace}.{pod}.log"
        return path.read_text(errors="replace") if path.exists() else ""


def lab_interpreter() -> Path:
    """The interpreter that has torch; RuntimeError says how to get one."""
    python = _ROOT / ".venv-lab" / "bin" / "python"
    if not python.exists():
        raise RuntimeError(f"{python} isn't there, and pods that train need torch: run `make .venv-lab`")
    return python


def start_kubelet(
    site: Site, children: Children, nodes: int = 2, interpreter: Path | None = None, pods_per_node: int = 8
) -> Kubelet:
    """Start it and wait until its nodes are Ready; `interpreter` None: the one that has torch."""
    folder = site.folder / CHILD
    children.start(
        CHILD,
        [
            sys.executable, "-m", "tests.e2e.kubelet", "--kubeconfig", site.kubeconfig, "--folder", folder,
            "--nodes", str(nodes), "--pods-per-node", str(pods_per_node),
            "--interpreter", interpreter or lab_interpreter(),
        ],
        {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": str(_ROOT)},
        folder=_ROOT,
    )  # fmt: skip
    api = Api.of(site.kubeconfig)
    names = tuple(f"process-{index}" for index in range(nodes))
    children.await_ready(CHILD, lambda: all(_is_ready(api, name) for name in names), _READY_S)
    return Kubelet(names, folder)


def _is_ready(api: Api, node: str) -> bool:
    """Ready, and open to pods: a new node is closed until the node controller has seen it."""
    try:
        found = api.get(f"/api/v1/nodes/{node}")
    except (ApiError, Unreachable):
        return False
    conditions = {one["type"]: one["status"] for one in found["status"].get("conditions", [])}
    closed = [one for one in found["spec"].get("taints", []) if one["effect"] == "NoSchedule"]
    return conditions.get("Ready") == "True" and not closed
