"""Whose a thing is, by its tags alone."""

import pytest

from workloads.operations.leftovers.ownership import (
    Owner,
    is_anothers,
    is_group_of_eks,
    is_interface_of_cni,
    is_karpenters,
    is_of_cluster,
    is_of_stack,
)

DEV = Owner(project="topolab", stack="dev", region="us-east-1")
OWN = {"topolab:project": "topolab", "topolab:stack": "dev"}
OWNED = {"kubernetes.io/cluster/topolab-dev": "owned"}
POOL = {"karpenter.sh/nodepool": "p"}

TABLE: tuple[tuple[dict[str, str], bool, bool, bool, bool], ...] = (
    # tags, of the stack, another's, of the cluster, Karpenter's
    ({}, False, False, False, False),
    (OWN, True, False, False, False),
    ({"topolab:stack": "dev"}, False, False, False, False),
    ({**OWN, "topolab:stack": "dev-2"}, False, True, False, False),
    ({**OWNED}, False, False, True, False),
    ({**OWNED, **POOL}, False, False, True, True),
    ({**OWNED, **POOL, **OWN}, True, False, True, True),
    ({**OWNED, **POOL, "topolab:project": "other"}, False, True, False, False),
    ({"kubernetes.io/cluster/topolab-dev": "shared", **POOL}, False, False, False, False),
    ({"kubernetes.io/cluster/topolab-dev-2": "owned", **POOL}, False, False, False, False),
    (POOL, False, False, False, False),
)


@pytest.mark.parametrize(("tags", "stack", "another", "cluster", "karpenter"), TABLE)
def test_whose(tags, stack, another, cluster, karpenter):
    assert is_of_stack(tags, DEV) is stack
    assert is_anothers(tags, DEV) is another
    assert is_of_cluster(tags, DEV) is cluster
    assert is_karpenters(tags, DEV) is karpenter


INTERFACES: tuple[tuple[dict[str, str], bool], ...] = (
    ({}, False),
    ({"cluster.k8s.amazonaws.com/name": "topolab-dev"}, True),
    ({"node.k8s.amazonaws.com/instance_id": "i-1"}, True),
    ({"cluster.k8s.amazonaws.com/name": "other", "node.k8s.amazonaws.com/instance_id": "i-1"}, False),
    ({"node.k8s.amazonaws.com/instance_id": "i-1", "topolab:stack": "dev-2"}, False),
)


@pytest.mark.parametrize(("tags", "ours"), INTERFACES)
def test_an_interface_is_the_cnis_unless_it_names_another_cluster(tags, ours):
    assert is_interface_of_cni(tags, DEV) is ours


def test_the_clusters_group_is_told_by_name_and_tag_together():
    assert is_group_of_eks("eks-cluster-sg-topolab-dev-1", OWNED, DEV)
    assert not is_group_of_eks("eks-cluster-sg-topolab-dev-1", {}, DEV)
    assert not is_group_of_eks("mine", OWNED, DEV)
    assert not is_group_of_eks("eks-cluster-sg-topolab-dev-2-1", {"kubernetes.io/cluster/topolab-dev-2": "owned"}, DEV)
