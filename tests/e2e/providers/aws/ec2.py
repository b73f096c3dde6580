"""What all objects of EC2 share: how they are found, tagged, waited for and deleted."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from botocore.exceptions import ClientError

from tests.e2e.providers.aws.cloud import Cloud, PendingError, code_of, gone_is_fine
from tests.e2e.providers.aws.kinds import Kind, changed_tags, tag_list, tag_map
from tests.e2e.providers.values import Properties

DEPENDED_ON = r"DependencyViolation|InUse"


class Ec2Kind(Kind):
    """What all objects of EC2 share: how they are found, tagged and deleted."""

    TAGGED_AS: ClassVar[str]
    ABSENT: ClassVar[str]
    """EC2's code for one that isn't there: only this one, or a part that lacks would pass for the whole."""

    def _tags(self, inputs: Properties) -> dict[str, Any]:
        tags = tag_list(inputs.get("tags"))
        return {"TagSpecifications": [{"ResourceType": self.TAGGED_AS, "Tags": tags}]} if tags else {}

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        found = first(lambda: self.described(cloud, identifier), self.ABSENT)
        if found is None:
            return None
        shown = self.shown(cloud, identifier, found)
        return {**shown, "tags": tag_map(found.get("Tags"))} if self.tagged else shown

    @abstractmethod
    def described(self, cloud: Cloud, identifier: str) -> list[dict[str, Any]]:
        """AWS's answer about this one; empty or NotFound when it is gone."""

    @abstractmethod
    def shown(self, cloud: Cloud, identifier: str, found: Mapping[str, Any]) -> Properties:
        """The answer in the provider's names, but for tags."""

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        change_tags(cloud, identifier, old, new)

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs
        with gone_is_fine(self.ABSENT):
            cloud.once_free(lambda: self.deleted(cloud, identifier), DEPENDED_ON, free_s)

    def deleted(self, cloud: Cloud, identifier: str) -> None:
        """The call that deletes it."""
        del cloud, identifier
        raise AssertionError(f"{self.TYPE} deletes in a way of its own")

    def until_state(self, cloud: Cloud, identifier: str, wanted: str, within_s: float) -> None:
        """Wait for a state; PendingError at once when the object has failed."""

        def reached() -> bool:
            found = first(lambda: self.described(cloud, identifier), self.ABSENT) or {}
            if found.get("State") == "failed":
                why = found.get("FailureMessage") or found.get("FailureCode") or "no reason given"
                raise PendingError(f"{identifier} failed: {why}; run `pulumi up --replace URN` to make another")
            return str(found.get("State", wanted)).lower() == wanted

        cloud.until(reached, within_s, f"{identifier} to be {wanted}")


def first(describe: Callable[[], list[dict[str, Any]]], absent: str) -> dict[str, Any] | None:
    """The only object of an answer; None when AWS knows it no more, which it says by the code `absent`."""
    try:
        found = describe()
    except ClientError as error:
        if code_of(error) == absent:
            return None
        raise
    return found[0] if found else None


def change_tags(cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
    """Tags in place."""
    to_set, to_drop = changed_tags(old, new)
    if to_drop:
        cloud.ec2.delete_tags(Resources=[identifier], Tags=[{"Key": key} for key in to_drop])
    if to_set:
        cloud.ec2.create_tags(Resources=[identifier], Tags=tag_list(to_set))
