"""The binaries are what the go.mod files say: each is asked for its version."""

import resource
import subprocess
import sys

import pytest

from tests.e2e.tools import module_path, tool_folder
from tests.e2e.tools.groups import GROUPS, HELM, KUBEBOX, PULUMI, pins

pytestmark = pytest.mark.e2e

ETCD = pins("kubebox")["go.etcd.io/etcd/server/v3"].removeprefix("v")


def said(*command: object) -> str:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("words", "version"),
    [
        (("kubebox", "etcd", "--version"), f"etcd Version: {ETCD}\n"),
        (("kubebox", "kube-apiserver", "--version"), f"Kubernetes {KUBEBOX.version}\n"),
        (("kubebox", "kube-controller-manager", "--version"), f"Kubernetes {KUBEBOX.version}\n"),
        (("kubebox", "kube-scheduler", "--version"), f"Kubernetes {KUBEBOX.version}\n"),
        (("helm", "version", "--short"), HELM.version),
        (("pulumi", "version"), f"{PULUMI.version}\n"),
    ],
)
def test_the_program_says_the_pinned_version(words, version):
    assert version in said(tool_folder() / words[0], *words[1:])


@pytest.mark.parametrize(
    ("binary", "version"),
    # The one that may be a user's own is asked above.
    [(name, group.version_of(name)) for group in GROUPS for name in group.binaries if group is not PULUMI],
)
def test_the_binary_was_built_from_the_pinned_module(binary, version):
    lines = [line.split("\t") for line in said("go", "version", "-m", tool_folder() / binary).splitlines()]
    package = next(line[2] for line in lines if line[1:2] == ["path"])
    modules = {line[2]: line[3] for line in lines if line[1:2] in (["mod"], ["dep"])}
    # A main of ours has no version: it stands for the control plane that it starts.
    holding = [one for one in modules if package.startswith(one) and modules[one] != "(devel)"] or [KUBEBOX.module]
    assert modules[max(holding, key=len)] == version


def test_what_is_built_is_found_within_a_second_of_work_and_nothing_is_built_again():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "tests.e2e.tools"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (found.stdout.strip(), found.stderr) == (str(tool_folder()), "")
    # Of the processor, not of the clock: the machine may be busy.
    assert (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime) < 1


def test_custom_resource_definitions_and_charts_come_out_of_the_modules():
    karpenter, trainer = (
        module_path("github.com/aws/karpenter-provider-aws"),
        module_path("github.com/kubeflow/trainer/v2"),
    )
    assert (karpenter / "pkg/apis/crds/karpenter.sh_nodepools.yaml").is_file()
    assert (trainer / "charts/kubeflow-trainer/Chart.yaml").is_file()
    assert (module_path("sigs.k8s.io/jobset") / "charts/jobset/Chart.yaml").is_file()
    assert (module_path("sigs.k8s.io/aws-fsx-csi-driver") / "charts/aws-fsx-csi-driver/Chart.yaml").is_file()
