"""What is there of a stack, what of it is kept by choice, and what couldn't be learnt: pure but for its types."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workloads.catalogue.prices import usd_per_hour
from workloads.operations.leftovers.ownership import Tags
from workloads.planning.naming import KEPT


@dataclass(frozen=True, kw_only=True)
class Thing:
    """One resource that bears the stack's name. `remove`: the command that removes it, whole."""

    kind: str
    id: str
    remove: str
    tags: Tags
    state: str = ""
    instance_type: str | None = None
    instances: int = 1
    """How many of that type it costs as."""
    sweepable: bool = False
    """Nobody else can want it and nothing of the user's is in it: `--sweep` removes it."""


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A thing that should be gone. `usd_per_hour`: None where the catalogue has no price for it."""

    kind: str
    id: str
    state: str
    remove: str
    usd_per_hour: float | None
    sweepable: bool


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A thing that stays by the user's choice, and how to remove it in the end."""

    kind: str
    id: str
    reason: str
    remove: str


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """All that was found. `unproven`: a sentence for each question that wasn't answered."""

    left: Sequence[Leftover]
    kept: Sequence[Kept]
    unproven: Sequence[str]

    @property
    def is_destroyed(self) -> bool:
        """Nothing is left but what is kept by choice, and every question was answered."""
        return not self.left and not self.unproven

    @property
    def sweepable(self) -> Sequence[Leftover]:
        """What `--sweep` would remove."""
        return [one for one in self.left if one.sweepable]


BUCKET, FILE_SYSTEM = "bucket", "file system"
_STANDS_IN = ("VPC", "subnet", "security group")


def settle(things: Iterable[Thing], unproven: Sequence[str], region: str) -> Inventory:
    """Who stays and who should have gone. A network is kept only for a file system that is still there."""
    listed = list(things)
    system = any(one.kind == FILE_SYSTEM and _is_marked(one) for one in listed)
    kept, left = list[Kept](), list[Leftover]()
    for one in listed:
        reason = _kept_for(one, system_is_kept=system)
        if reason is None:
            left.append(_leftover(one, region))
        else:
            kept.append(Kept(kind=one.kind, id=one.id, reason=reason, remove=one.remove))
    return Inventory(left=left, kept=kept, unproven=unproven)


def _kept_for(one: Thing, *, system_is_kept: bool) -> str | None:
    if not _is_marked(one):
        return None
    if one.kind == BUCKET:
        return "run records"
    if one.kind == FILE_SYSTEM:
        return "storage.keep"
    return "the kept file system stands in it" if one.kind in _STANDS_IN and system_is_kept else None


def _is_marked(one: Thing) -> bool:
    return all(one.tags.get(key) == value for key, value in KEPT.items())


def _leftover(one: Thing, region: str) -> Leftover:
    price = None if one.instance_type is None else usd_per_hour(one.instance_type, region)
    price = None if price is None else price * one.instances
    return Leftover(
        kind=one.kind, id=one.id, state=one.state, remove=one.remove, usd_per_hour=price, sweepable=one.sweepable
    )
