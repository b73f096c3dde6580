"""Puts the charts together in a folder for `topolab:charts`, each by its name."""

import shutil
from collections.abc import Callable
from pathlib import Path

HOME = Path(__file__).parent
STAND_INS = ("nvidia-device-plugin", "aws-efa-k8s-device-plugin")
"""Whose real charts are in no Go module."""
_KARPENTER = "github.com/aws/karpenter-provider-aws"
_TRAINER = "github.com/kubeflow/trainer/v2"
_JOBSET = "sigs.k8s.io/jobset"


def assemble_charts(folder: Path, module_path: Callable[[str], Path]) -> Path:
    """The folder with every chart of the catalogue; `module_path` finds a Go module by its pinned version."""
    for name in STAND_INS:
        _copy(HOME / name, folder / name)
    for name in ("karpenter", "karpenter-crd"):
        _copy(module_path(_KARPENTER) / "charts" / name, folder / name)
    # In the repository these may be links, which a module's zip drops.
    _copy(module_path(_KARPENTER) / "pkg/apis/crds", folder / "karpenter-crd/templates")
    trainer = folder / "kubeflow-trainer"
    _copy(module_path(_TRAINER) / "charts/kubeflow-trainer", trainer)
    # Helm wants what Chart.yaml names as a dependency, also where its condition is off (lws).
    _copy(module_path(_JOBSET) / "charts/jobset", trainer / "charts/jobset")
    _copy(HOME / "lws", trainer / "charts/lws")
    return folder


def _copy(source: Path, target: Path) -> None:
    """Contents only: the module cache is read-only."""
    for path in source.rglob("*"):
        if path.is_file():
            copied = target / path.relative_to(source)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copied)
