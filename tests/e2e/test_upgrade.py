"""docs/upgrades.md on the real engine: another Kubernetes minor, and another image of nodes, replace nothing."""

import re

import pytest

from tests.e2e.engine.events import kind_of
from workloads.catalogue.versions import GPU_AMI_ALIAS, KUBERNETES

pytestmark = pytest.mark.e2e

STACK = "dev"
NEXT_MINOR = re.sub(r"\d+$", lambda minor: str(int(minor[0]) + 1), KUBERNETES)
OTHER_AMI = "al2023@v20260812"


def raised(user, old: str, new: str) -> None:
    """The one line of the list that the user's checkout has."""
    path = user.project / "workloads/catalogue/versions.py"
    text = path.read_text()
    assert text.count(f'"{old}"') == 1
    path.write_text(text.replace(f'"{old}"', f'"{new}"'))


def kinds(urns) -> set[str]:
    return {kind_of(urn).rsplit(":", 1)[-1] for urn in urns}


def test_a_minor_and_another_image_change_cluster_and_node_class_in_place(standing, workspace):
    workspace.init(STACK)
    workspace.up(STACK, "--skip-preview").must_succeed()
    (cluster,) = standing.inventory()["eks:cluster"]
    raised(workspace, KUBERNETES, NEXT_MINOR)
    minor = workspace.up(STACK, "--skip-preview").must_succeed().changes
    assert kinds(minor.updated) >= {"Cluster"}
    assert (minor.created, minor.replaced, minor.deleted) == ((), (), ())
    raised(workspace, GPU_AMI_ALIAS, OTHER_AMI)
    image = workspace.up(STACK, "--skip-preview").must_succeed().changes
    assert kinds(image.updated) == {"EC2NodeClass"}
    assert (image.created, image.replaced, image.deleted) == ((), (), ())
    assert standing.inventory()["eks:cluster"] == [cluster]
    assert workspace.up(STACK, "--skip-preview").must_succeed().changes.is_none
    workspace.destroy(STACK, "--skip-preview").must_succeed()
