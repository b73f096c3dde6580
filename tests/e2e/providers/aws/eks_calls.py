"""What the rows of EKS share: finding, waiting, tagging."""

from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from tests.e2e.providers.aws.cloud import Cloud, PendingError, code_of
from tests.e2e.providers.aws.kinds import changed_tags
from tests.e2e.providers.values import Properties

GONE = "ResourceNotFoundException"
BUSY = "in progress"
_FAILED = ("CREATE_FAILED", "FAILED", "UPDATE_FAILED")


def found(describe: Callable[[], Any]) -> Any:
    """The answer; None where EKS knows no such object."""
    try:
        return describe()
    except ClientError as error:
        if code_of(error) == GONE:
            return None
        raise


def cluster_of(cloud: Cloud, name: str) -> Any:
    """A cluster, or None."""
    return found(lambda: cloud.eks.describe_cluster(name=name)["cluster"])


def node_group_of(cloud: Cloud, identifier: str) -> Any:
    """A node group by `cluster:name`, or None."""
    cluster, _, name = identifier.partition(":")
    return found(lambda: cloud.eks.describe_nodegroup(clusterName=cluster, nodegroupName=name)["nodegroup"])


def addon_of(cloud: Cloud, identifier: str) -> Any:
    """An add-on by `cluster:name`, or None."""
    cluster, _, name = identifier.partition(":")
    return found(lambda: cloud.eks.describe_addon(clusterName=cluster, addonName=name)["addon"])


def until_active(cloud: Cloud, describe: Callable[[], Any], what: str, within_s: float) -> None:
    """Wait for ACTIVE; PendingError, with EKS's reasons, at once when it has failed, else after the time.

    DEGRADED is waited out as in the real provider: an add-on is so until a node takes its pods.
    """
    seen: dict[str, Any] = {}

    def active() -> bool:
        seen.update(describe() or {"status": "gone"})
        if seen["status"] in _FAILED:
            raise PendingError(f"{what} is {seen['status']}{_why(seen)}; run `pulumi up --replace URN` to make another")
        return bool(seen["status"] == "ACTIVE")

    try:
        cloud.until(active, within_s, f"{what} to be ACTIVE")
    except PendingError as error:
        if seen["status"] in _FAILED:
            raise
        raise PendingError(f"{error} (last state {seen['status']}{_why(seen)})") from None


def until_gone(cloud: Cloud, describe: Callable[[], Any], what: str) -> None:
    """Wait until EKS knows it no more; PendingError when deleting it failed."""

    def away() -> bool:
        one = describe()
        if one and one["status"] == "DELETE_FAILED":
            raise PendingError(f"{what} is DELETE_FAILED{_why(one)}")
        return one is None

    cloud.until(away, cloud.waits.gone_s, f"{what} to go")


def change_tags(cloud: Cloud, arn: str, old: Properties, new: Properties) -> None:
    """Tags in place."""
    to_set, to_drop = changed_tags(old, new)
    if to_drop:
        cloud.eks.untag_resource(resourceArn=arn, tagKeys=to_drop)
    if to_set:
        cloud.eks.tag_resource(resourceArn=arn, tags=to_set)


def _why(one: Mapping[str, Any]) -> str:
    issues = [issue.get("message", issue["code"]) for issue in (one.get("health") or {}).get("issues", [])]
    return f": {'; '.join(issues)}" if issues else ""
