"""What is built: groups of binaries that share one go.mod, and the key under which each group is kept."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parent
FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false")
"""Nothing of this machine in a binary, and nothing written into the checkout."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """One folder beside this file. `binaries`: file name to the package that is its main."""

    name: str
    module: str
    """The module that gives the group its version."""
    binaries: Mapping[str, str]
    stamps: Mapping[str, str] = field(default_factory=dict)
    """Variables that upstream's release build sets, with {version}, {major} and {minor} in the value."""

    @property
    def folder(self) -> Path:
        """Its go.mod, go.sum and sources of ours."""
        return SOURCES / self.name

    @property
    def version(self) -> str:
        """As its go.mod pins it, with the v."""
        return pins(self.name)[self.module]

    def version_of(self, binary: str) -> str:
        """Of the module that holds the binary's main."""
        package = self.binaries[binary]
        holding = [module for module in pins(self.name) if package == module or package.startswith(f"{module}/")]
        return pins(self.name)[max(holding, key=len)] if holding else self.version

    @property
    def flags(self) -> tuple[str, ...]:
        """Of `go build`. Without symbol tables: half the size, and nobody debugs these."""
        major, minor = self.version.removeprefix("v").split(".")[:2]
        values = {
            name: text.format(version=self.version, major=major, minor=minor) for name, text in self.stamps.items()
        }
        return (*FLAGS, "-ldflags", " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in values.items())]))


KUBEBOX = Group(
    name="kubebox",
    module="k8s.io/kubernetes",
    binaries={"kubebox": "."},
    stamps={
        "k8s.io/component-base/version.gitVersion": "{version}",
        "k8s.io/component-base/version.gitMajor": "{major}",
        "k8s.io/component-base/version.gitMinor": "{minor}",
    },
)
CONTROLLERS = Group(
    name="controllers",
    module="github.com/kubeflow/trainer/v2",
    binaries={
        "trainer-controller-manager": "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
        "jobset": "sigs.k8s.io/jobset",
        "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    },
)
KARPENTER = Group(
    name="karpenter",
    module="github.com/aws/karpenter-provider-aws",
    # Upstream's form for clusters without machines: all of the controller but the launch of instances.
    binaries={"karpenter": "github.com/aws/karpenter-provider-aws/kwok"},
    stamps={"sigs.k8s.io/karpenter/pkg/operator.Version": "{version}"},
)
HELM = Group(
    name="helm",
    module="helm.sh/helm/v3",
    binaries={"helm": "helm.sh/helm/v3/cmd/helm"},
    stamps={"helm.sh/helm/v3/internal/version.version": "{version}"},
)
PULUMI = Group(
    name="pulumi",
    module="github.com/pulumi/pulumi/pkg/v3",
    binaries={"pulumi": "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"},
    stamps={"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": "{version}"},
)
GROUPS: tuple[Group, ...] = (KUBEBOX, CONTROLLERS, KARPENTER, HELM, PULUMI)
"""Also the order of building."""
FILES = "files"
"""A folder whose go.mod pins modules that only charts and manifests are taken of; nothing is built there."""


def digest(group: Group, go_version: str) -> str:
    """Of everything that decides what a binary is."""
    told = hashlib.sha256()
    inputs: list[bytes] = [go_version.encode(), *(word.encode() for word in (*group.flags, *group.binaries.values()))]
    for path in sorted(group.folder.rglob("*")):
        if path.is_file():
            inputs += [str(path.relative_to(group.folder)).encode(), path.read_bytes()]
    for item in inputs:
        # With its length, so that no two lists of inputs look the same.
        told.update(b"%d:" % len(item) + item)
    return told.hexdigest()[:16]


@cache
def pins(name: str) -> Mapping[str, str]:
    """Modules of the folder's go.mod and the versions that are built: those of `replace` where there is one."""
    text = (SOURCES / name / "go.mod").read_text()
    required = dict(re.findall(r"^(?:require )?\t?(\S+\.\S+) (v\S+)(?: // indirect)?$", text, flags=re.MULTILINE))
    # A module that is replaced by another one isn't in the cache under its own name.
    own = re.findall(r"^(?:replace )?\t?(\S+) => \1 (v\S+)$", text, flags=re.MULTILINE)
    return {**required, **dict(own)}


def needed_go(names: Sequence[str] | None = None) -> tuple[int, ...]:
    """The newest Go that one of the go.mod files asks for (None: of all)."""
    asked = [*(group.name for group in GROUPS), FILES] if names is None else names
    lines = (re.search(r"^go (\S+)$", (SOURCES / name / "go.mod").read_text(), re.MULTILINE) for name in asked)
    return max(tuple(int(part) for part in line[1].split(".")) for line in lines if line)
