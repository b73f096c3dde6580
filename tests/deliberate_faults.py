"""Ten deliberate faults, each put into a copy of the repository, and the tests that must then fail.

    python -m tests.deliberate_faults [NAME...]     about a minute; exit 1 when a fault goes unnoticed

A proof that can't fail proves nothing; this is the proof of the proof. docs/diary/ holds a dated outcome.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.source import ROOT, tracked_files

_LINKED = (".venv", ".venv-lab")


@dataclass(frozen=True, kw_only=True)
class DeliberateFault:
    """`old`, which stands once in `file`, becomes `new`; each test of `caught_by` must fail by it."""

    name: str
    file: str
    old: str
    new: str
    caught_by: tuple[str, ...]


FAULTS: tuple[DeliberateFault, ...] = (
    DeliberateFault(
        name="wrong order",
        file="infra/trainer_operator.py",
        old="depends_on=args.after,",
        new="depends_on=[],",
        caught_by=("tests/test_program.py::test_destroy_takes",),
    ),
    DeliberateFault(
        name="missing depends_on on the drain guard",
        file="infra/gpu_nodes.py",
        old="depends_on=[drained], delete_timeout=DRAIN",
        new="depends_on=[args.controller], delete_timeout=DRAIN",
        caught_by=("tests/test_program.py::test_destroy_takes",),
    ),
    DeliberateFault(
        name="wrong label",
        file="workloads/rendering/runtime.py",
        old='{"labels": {ANCESTOR_LABEL: "trainer"}}',
        new='{"labels": {ANCESTOR_LABEL: "node"}}',
        caught_by=("tests/workloads/rendering/test_goldens.py",),
    ),
    DeliberateFault(
        name="missing toleration",
        file="workloads/rendering/placement.py",
        old='for key in ("nvidia.com/gpu", "vpc.amazonaws.com/efa")',
        new='for key in ("vpc.amazonaws.com/efa",)',
        caught_by=("tests/workloads/rendering/test_goldens.py",),
    ),
    DeliberateFault(
        name="wrong EFA count",
        file="workloads/rendering/train_job.py",
        old='"vpc.amazonaws.com/efa": wanted.efa_devices}',
        new='"vpc.amazonaws.com/efa": wanted.efa_devices * 2}',
        caught_by=("tests/workloads/rendering/test_goldens.py",),
    ),
    DeliberateFault(
        name="public subnet",
        file="infra/network.py",
        old="self.gpu_subnet_id = gpu.id",
        new="self.gpu_subnet_id = public[0].id",
        caught_by=(
            "tests/infra/test_gpu_nodes.py::test_nodes_stand_in_the_one_gpu_subnet_with_the_clusters_own_group_and_our_profile",
        ),
    ),
    DeliberateFault(
        name="secret in plain",
        file="infra/settings.py",
        old='return {"secure": HIDDEN}',
        new='return {"secure": config.require(key)}',
        caught_by=("tests/infra/test_settings.py::test_a_secret_under_a_misspelt_key_is_not_shown",),
    ),
    DeliberateFault(
        name="data not retained",
        file="infra/records.py",
        old="kept = self.child(retain=True)",
        new="kept = self.child(retain=False)",
        caught_by=("tests/test_program.py::test_what_holds_data_is_kept_at_destroy_and_nothing_else_is",),
    ),
    DeliberateFault(
        name="TTL",
        file="workloads/rendering/runtime.py",
        old='"failurePolicy": {"maxRestarts": 0},',
        new='"failurePolicy": {"maxRestarts": 0}, "ttlSecondsAfterFinished": 60,',
        caught_by=("tests/workloads/rendering/test_lint.py::test_no_rendered_document_has_a_fault",),
    ),
    DeliberateFault(
        name="wrong port",
        file="infra/storage.py",
        old="LUSTRE_PORTS = ((988, 988), ",
        new="LUSTRE_PORTS = ((989, 989), ",
        caught_by=(
            "tests/infra/test_storage.py::test_a_kept_system_has_a_group_that_outlives_the_cluster_and_opens_lustres_ports",
        ),
    ),
)


def main(names: Sequence[str]) -> int:
    """Try each fault; 0 when every one is caught by every test that names it."""
    unknown = set(names) - {fault.name for fault in FAULTS}
    if unknown:
        print(f"no such fault: {', '.join(sorted(unknown))}; there are {', '.join(f.name for f in FAULTS)}")
        return 2
    chosen = [fault for fault in FAULTS if not names or fault.name in names]
    missed = [test for fault in chosen for test in _try(fault)]
    print(f"{len(chosen)} faults, {len(missed)} tests that noticed nothing")
    return 1 if missed else 0


def broken(fault: DeliberateFault) -> str:
    """The text of its file with the fault in it; ValueError where `old` doesn't stand there once."""
    text = (ROOT / fault.file).read_text()
    if text.count(fault.old) != 1:
        raise ValueError(f"fault {fault.name!r}: {fault.old!r} stands {text.count(fault.old)} times in {fault.file}")
    return text.replace(fault.old, fault.new)


def _try(fault: DeliberateFault) -> list[str]:
    """The tests that passed in spite of the fault."""
    with tempfile.TemporaryDirectory(prefix="topolab-fault-") as folder:
        copy = Path(folder)
        _copy_repository(copy)
        (copy / fault.file).write_text(broken(fault))
        passed = [test for test in fault.caught_by if not _fails(test, copy)]
    for test in fault.caught_by:
        print(f"{fault.name:20} {'MISSED by' if test in passed else 'caught by'} {test}", flush=True)
    return passed


def _copy_repository(folder: Path) -> None:
    for path in tracked_files():
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    # The rules about tracked files ask git.
    subprocess.run(["git", "init", "--quiet", "."], cwd=folder, check=True)
    for name in _LINKED:
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)


def _fails(test: str, folder: Path) -> bool:
    """Whether pytest runs the test there and it fails; a test that isn't there is an error of ours."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode not in (0, 1):
        raise RuntimeError(
            f"pytest {test} ended with {result.returncode}:\n{result.stdout[-2000:]}{result.stderr[-500:]}"
        )
    return result.returncode == 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
