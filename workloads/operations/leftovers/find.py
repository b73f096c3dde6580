"""Everything of a stack that an account holds, every question asked though one isn't answered."""

from collections.abc import Callable, Iterator
from functools import partial

from workloads.operations.leftovers import karpenters, of_ec2, of_services
from workloads.operations.leftovers.aws import Aws, RefusedError, sentences, tags_of
from workloads.operations.leftovers.inventory import Inventory, Thing, settle
from workloads.operations.leftovers.ownership import Owner, is_anothers, is_of_stack

Finder = Callable[[Aws, Owner], Iterator[Thing]]


def _of_kind(kind: of_ec2.Ec2Kind, aws: Aws, owner: Owner) -> Iterator[Thing]:
    return of_ec2.things(aws, owner, kind)


FINDERS: dict[str, Finder] = {
    "EKS clusters": of_services.clusters,
    **{f"{kind.kind}s": partial(_of_kind, kind) for kind in of_ec2.KINDS},
    "network interfaces": of_ec2.interfaces,
    "file systems": of_services.file_systems,
    "buckets": of_services.buckets,
    "queues": of_services.queues,
    "event rules": of_services.rules,
    "log groups": of_services.log_groups,
    "IAM roles": of_services.roles,
    "IAM policies": of_services.policies,
    "instance profiles": of_services.instance_profiles,
    "the tag index": of_services.tagged,
}
"""What is asked, by the words of the question."""


def find(aws: Aws, owner: Owner) -> Inventory:
    """Ask every question; one that isn't answered makes the outcome unproven, in a sentence."""
    things, unproven = list[Thing](), list[str]()
    for question, finder in FINDERS.items():
        try:
            with sentences(question):
                things += finder(aws, owner)
        except RefusedError as error:
            unproven.append(str(error))
    if _cluster_is_anothers(aws, owner):
        # What bears the cluster's name alone is theirs.
        things = [one for one in things if is_of_stack(one.tags, owner)]
    return settle(things, unproven, owner.region)


def _cluster_is_anothers(aws: Aws, owner: Owner) -> bool:
    try:
        with sentences("EKS clusters"):
            cluster = karpenters.cluster(aws, owner)
    except RefusedError:
        # Already among what is unproven.
        return False
    return cluster is not None and is_anothers(tags_of(cluster), owner)
