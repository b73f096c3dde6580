"""Ten deliberate faults, each put into a copy of the repository, and the tests that must then fail.

    python -m tests.deliberate_faults [NAME...]     some five minutes; exit 1 when a fault goes unnoticed

A proof that can't fail proves nothing; this is the proof of the proof. First the same tests run on a copy without any
fault, the control: all must pass there, or their failing would prove nothing either. docs/diary/ holds a dated outcome.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.source import ROOT, tracked_files

_LINKED = (".venv", ".venv-lab")
_ARM = "[g6e12xl-4x4-efa1]"
_GOLDEN = f"tests/workloads/rendering/test_goldens.py::test_each_named_topology_renders_as_its_golden_says{_ARM}"
_LINT = f"tests/workloads/rendering/test_lint.py::test_no_rendered_document_has_a_fault{_ARM}"


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
        caught_by=("tests/test_program.py::test_destroy_takes[Release-kubeflow-trainer-NodePool-node-pool]",),
    ),
    DeliberateFault(
        name="missing depends_on on the drain guard",
        file="infra/gpu_nodes.py",
        old="depends_on=[drained], delete_timeout=DRAIN",
        new="depends_on=[args.controller], delete_timeout=DRAIN",
        caught_by=("tests/test_program.py::test_destroy_takes[EC2NodeClass-node-class-NodesDrained-nodes-drained]",),
    ),
    DeliberateFault(
        name="wrong label",
        file="workloads/rendering/runtime.py",
        old='{"labels": {ANCESTOR_LABEL: "trainer"}}',
        new='{"labels": {ANCESTOR_LABEL: "node"}}',
        caught_by=(
            _GOLDEN,
            _LINT,
            "tests/e2e/test_pods_as_rendered.py::test_real_pods_are_as_rendered[g6e12xl-4x4-efa1]",
        ),
    ),
    DeliberateFault(
        name="missing toleration",
        file="workloads/rendering/placement.py",
        old='for key in ("nvidia.com/gpu", "vpc.amazonaws.com/efa")',
        new='for key in ("vpc.amazonaws.com/efa",)',
        caught_by=(
            _GOLDEN,
            _LINT,
        ),
    ),
    DeliberateFault(
        name="wrong EFA count",
        file="workloads/rendering/train_job.py",
        old='"vpc.amazonaws.com/efa": wanted.efa_devices}',
        new='"vpc.amazonaws.com/efa": wanted.efa_devices * 2}',
        caught_by=(
            _GOLDEN,
            _LINT,
        ),
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
        file="infra/train_job.py",
        old='metadata={"name": name, "namespace": NAMESPACE}',
        new='metadata={"name": name, "namespace": NAMESPACE, '
        '"annotations": {"token": pulumi.Output.unsecret(self._args.hf_token)}}',
        caught_by=(
            "tests/test_program.py::test_the_token_is_in_one_secret_and_nowhere_in_the_clear",
            "tests/e2e/test_secrets.py::test_no_file_holds_the_token[clear]",
        ),
    ),
    DeliberateFault(
        name="data not retained",
        file="infra/records.py",
        old="kept = self.child(retain=True)",
        new="kept = self.child(retain=False)",
        caught_by=("tests/test_program.py::test_what_holds_data_is_kept_at_destroy_and_nothing_else_is[dev]",),
    ),
    DeliberateFault(
        name="TTL",
        file="workloads/rendering/runtime.py",
        old='"failurePolicy": {"maxRestarts": plan.restarts},',
        new='"failurePolicy": {"maxRestarts": plan.restarts}, "ttlSecondsAfterFinished": 60,',
        caught_by=(_GOLDEN, _LINT),
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
    tests = dict.fromkeys(test for fault in chosen for test in fault.caught_by)
    with _copy() as control:
        failing = [test for test in tests if fails(test, control)]
    print(f"control: {len(tests)} tests, {len(failing)} fail without any fault {failing or ''}".rstrip(), flush=True)
    if failing:
        return 1
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
    with _copy() as copy:
        (copy / fault.file).write_text(broken(fault))
        passed = [test for test in fault.caught_by if not fails(test, copy)]
    for test in fault.caught_by:
        print(f"{fault.name:20} {'MISSED by' if test in passed else 'caught by'} {test}", flush=True)
    return passed


@contextmanager
def _copy() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="topolab-fault-") as folder:
        _copy_repository(Path(folder))
        yield Path(folder)


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


def fails(test: str, folder: Path) -> bool:
    """Whether pytest runs the test there and it fails; one that isn't there, or can't begin, is an error of ours."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    last = (result.stdout.splitlines() or [""])[-1]
    if not re.match(r"1 (passed|failed) in ", last):
        raise RuntimeError(
            f"pytest {test} ended with {result.returncode}:\n{result.stdout[-2000:]}{result.stderr[-500:]}"
        )
    return last.startswith("1 failed")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
