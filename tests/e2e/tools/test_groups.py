"""What the binaries are built from, and what makes them others."""

import shutil
from collections.abc import Iterator

import pytest

from tests.e2e.tools import groups
from tests.e2e.tools.groups import GROUPS, HELM, SOURCES, Group, digest, needed_go, pins
from workloads.catalogue.versions import KARPENTER, KUBEFLOW_TRAINER, KUBERNETES

GO = "go1.26.8 linux/amd64"


@pytest.fixture
def group(tmp_path, monkeypatch) -> Iterator[Group]:
    """A copy that a test may change."""
    shutil.copytree(SOURCES / "kubebox", tmp_path / "changing")
    monkeypatch.setattr(groups, "SOURCES", tmp_path)
    pins.cache_clear()
    yield Group(name="changing", module="k8s.io/kubernetes", binaries={"kubebox": "."})
    pins.cache_clear()


@pytest.mark.parametrize("name", ["go.mod", "go.sum", "main.go"])
def test_another_source_is_another_build(group, name):
    before = digest(group, GO)
    path = group.folder / name
    path.write_text(path.read_text() + "\n// more\n")
    assert digest(group, GO) != before


def test_a_touched_file_is_the_same_build(group):
    before = digest(group, GO)
    (group.folder / "main.go").touch()
    assert digest(group, GO) == before


def test_another_go_or_other_flags_are_another_build(group):
    stamped = Group(name=group.name, module=group.module, binaries=group.binaries, stamps={"main.version": "{version}"})
    keys = {digest(group, GO), digest(group, "go1.26.9 linux/amd64"), digest(stamped, GO)}
    assert len(keys) == 3


def test_a_byte_that_moves_from_one_file_to_the_next_is_another_build(group):
    before = digest(group, GO)
    text = (group.folder / "go.mod").read_text()
    (group.folder / "go.mod").write_text(text[:-1])
    (group.folder / "go.sum").write_text(text[-1] + (group.folder / "go.sum").read_text())
    assert digest(group, GO) != before


def test_no_two_groups_build_a_binary_of_the_same_name():
    names = [binary for group in GROUPS for binary in group.binaries]
    assert sorted(names) == sorted(set(names))


def test_controllers_are_those_that_the_program_installs():
    assert pins("karpenter")["github.com/aws/karpenter-provider-aws"] == f"v{KARPENTER.version}"
    assert pins("controllers")["github.com/kubeflow/trainer/v2"] == f"v{KUBEFLOW_TRAINER.version}"
    assert pins("kubebox")["k8s.io/kubernetes"].startswith(f"v{KUBERNETES}.")


def test_a_replaced_module_counts_by_what_it_is_replaced_with():
    # Karpenter's own go.mod names a commit of its core that isn't published.
    assert pins("karpenter")["sigs.k8s.io/karpenter"] == pins("karpenter")["github.com/aws/karpenter-provider-aws"]


def test_each_binary_has_the_version_of_the_module_that_holds_it():
    (controllers,) = (group for group in GROUPS if "jobset" in group.binaries)
    versions = {binary: controllers.version_of(binary) for binary in controllers.binaries}
    assert versions == {
        "trainer-controller-manager": pins("controllers")["github.com/kubeflow/trainer/v2"],
        "jobset": pins("controllers")["sigs.k8s.io/jobset"],
        "kwok": pins("controllers")["sigs.k8s.io/kwok"],
    }


def test_release_stamps_carry_the_pinned_version():
    assert HELM.flags[-1] == f"-s -w -X helm.sh/helm/v3/internal/version.version={HELM.version}"


def test_the_newest_go_that_a_folder_asks_for_is_needed_for_all():
    assert needed_go() == max(needed_go([group.name]) for group in GROUPS)
    assert needed_go(["helm"]) < needed_go()
