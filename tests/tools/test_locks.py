"""The locks that are in the repository."""

import re
import sys

import pytest

from tests.source import ROOT, of
from tools.pins import TORCH_FAMILY, meets, normal, read_lock, read_requirements

LOCKS = {
    "requirements.lock": "requirements.txt",
    "requirements-dev.lock": "requirements-dev.txt",
    "requirements-lab.lock": "requirements-lab.txt",
    "trainer/requirements.lock": "trainer/requirements.txt",
}


@pytest.mark.parametrize(("lock", "requirements"), LOCKS.items())
def test_a_lock_holds_every_requirement_within_its_range(lock, requirements):
    pins = read_lock((ROOT / lock).read_text())
    ranges = read_requirements(ROOT / requirements)
    assert {name: wanted for name, wanted in ranges.items() if not meets(pins[name].version, wanted)} == {}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_is_hashed_and_no_line_says_where_packages_come_from(lock):
    text = (ROOT / lock).read_text()
    assert all(any("--hash=sha256:" in line for line in pin.lines) for pin in read_lock(text).values())
    assert not re.search(r"--index-url|--extra-index-url|--find-links|https?://", text)


def test_what_is_added_to_an_image_leaves_its_torch_alone():
    pins = read_lock((ROOT / "trainer/requirements.lock").read_text())
    assert [name for name in pins if TORCH_FAMILY.match(name)] == []
    assert "torch" not in read_requirements(ROOT / "trainer/requirements.txt")


def test_the_lab_needs_no_pulumi_and_the_program_no_torch():
    assert not any(name.startswith("pulumi") for name in read_lock((ROOT / "requirements-lab.lock").read_text()))
    assert "torch" not in read_lock((ROOT / "requirements-dev.lock").read_text())


def test_one_package_has_one_version_in_all_locks():
    seen: dict[str, set[str]] = {}
    for lock in LOCKS:
        for name, pin in read_lock((ROOT / lock).read_text()).items():
            seen.setdefault(name, set()).add(pin.version)
    assert {name: versions for name, versions in seen.items() if len(versions) > 1} == {}


DISTRIBUTION = {"yaml": "pyyaml", "cfnlint": "cfn-lint", "pulumi_aws": "pulumi-aws", "pulumi_eks": "pulumi-eks",
                "pulumi_kubernetes": "pulumi-kubernetes"}  # fmt: skip
"""Import name to distribution, where they differ."""
OF_PULUMI = {"google", "grpc"}
"""Packages of Pulumi's own protocol: whichever version it brings is the right one."""


@pytest.mark.parametrize(
    ("package", "requirements"),
    [
        ("trainer", "requirements-lab.txt"),
        ("workloads", "requirements-cli.txt"),
        ("infra", "requirements.txt"),
        ("tests", "requirements-dev.txt"),
    ],
)
def test_every_package_that_is_imported_is_asked_for_by_name(package, requirements):
    asked = set(read_requirements(ROOT / requirements)) | {"torch", "triton"} | OF_PULUMI  # torch brings triton
    if package == "tests":
        asked |= set(read_requirements(ROOT / "requirements-lab.txt"))
    imported = {name.split(".")[0] for module in of(package) for name, _ in module.imports()}
    foreign = imported - set(sys.stdlib_module_names) - {"trainer", "workloads", "infra", "tools", "tests"}
    assert sorted(name for name in foreign if DISTRIBUTION.get(name, normal(name)) not in asked) == []
