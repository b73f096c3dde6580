"""Whose a thing in a shared account is, by its tags: pure.

Sources: Karpenter's tags are those that its IAM policies demand (getting-started template of v1.14.1), the
CNI's those of amazon-vpc-cni-k8s v1.23.0 (README, "cluster.k8s.amazonaws.com/name"; pkg/awsutils).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from workloads.planning.naming import Names

Tags = Mapping[str, str]

POOL_KEY = "karpenter.sh/nodepool"
"""On everything that Karpenter launches, whatever the pool is called."""
CLUSTER_KEY = "kubernetes.io/cluster/"
"""Begins the key that names a cluster."""
CNI_CLUSTER_KEY = "cluster.k8s.amazonaws.com/name"
CNI_INSTANCE_KEY = "node.k8s.amazonaws.com/instance_id"


@dataclass(frozen=True, kw_only=True)
class Owner:
    """One stack in one region: what it is called, and the tags that say so."""

    project: str
    stack: str
    region: str

    @property
    def names(self) -> Names:
        """As the program calls its things."""
        return Names(project=self.project, stack=self.stack)

    @property
    def cluster(self) -> str:
        """The EKS cluster's name."""
        return self.names.base

    @property
    def cluster_key(self) -> str:
        """Key of the tag, value `owned`, of what belongs to the cluster."""
        return f"{CLUSTER_KEY}{self.cluster}"

    @property
    def profile_path(self) -> str:
        """Path of the instance profiles that Karpenter makes by itself (since 1.7)."""
        return f"/karpenter/{self.region}/{self.cluster}/"

    @property
    def group_prefix(self) -> str:
        """How EKS begins the name of the security group that it makes for the cluster."""
        return f"eks-cluster-sg-{self.cluster}-"


def is_of_stack(tags: Tags, owner: Owner) -> bool:
    """Tagged with this project and this stack."""
    return all(tags.get(key) == value for key, value in owner.names.tags.items())


def is_anothers(tags: Tags, owner: Owner) -> bool:
    """Tagged with another project or stack: never ours, though a cluster's name may say so.

    Two projects with stacks of one name give their clusters one name.
    """
    return any(key in tags and tags[key] != value for key, value in owner.names.tags.items())


def is_of_cluster(tags: Tags, owner: Owner) -> bool:
    """Owned by the cluster."""
    return tags.get(owner.cluster_key) == "owned" and not is_anothers(tags, owner)


def is_karpenters(tags: Tags, owner: Owner) -> bool:
    """Launched by the cluster's Karpenter: both tags, as Karpenter's own rights to delete demand both."""
    return is_of_cluster(tags, owner) and POOL_KEY in tags


def is_interface_of_cni(tags: Tags, owner: Owner) -> bool:
    """Made by the CNI of the cluster; older releases name the instance alone, so look in the stack's VPC only."""
    clusters = {key for key in tags if key.startswith(CLUSTER_KEY)}
    if is_anothers(tags, owner) or clusters - {owner.cluster_key}:
        return False
    return tags.get(CNI_CLUSTER_KEY, owner.cluster) == owner.cluster and (
        CNI_CLUSTER_KEY in tags or CNI_INSTANCE_KEY in tags
    )


def is_group_of_eks(name: str, tags: Tags, owner: Owner) -> bool:
    """The cluster's own security group, which EKS leaves behind where an interface still held it."""
    return name.startswith(owner.group_prefix) and is_of_cluster(tags, owner)
