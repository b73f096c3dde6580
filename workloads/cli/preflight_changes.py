"""The two things that `topo preflight` changes where it is asked to: a reservation, and the stack file's image."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import urllib3
from botocore.exceptions import ClientError

from workloads.catalogue.prices import usd_per_hour
from workloads.cli.output import write_whole
from workloads.operations.leftovers import karpenters
from workloads.operations.leftovers.aws import Aws, sentences
from workloads.operations.preflight.questions.account import zones_offering
from workloads.operations.preflight.questions.asked import Asked
from workloads.operations.preflight.questions.money import on_demand_price
from workloads.operations.preflight.questions.software import digest_of
from workloads.operations.preflight.reserve import Wish, cost, reserve, wish
from workloads.operations.preflight.rows import Row
from workloads.operations.preflight.subject import Subject
from workloads.planning.stack_edit import with_platform

OLD_CAPACITY = frozenset({"zone", "reservation", "reservation's end"})
"""Rows that a new reservation makes good: red ones of these don't keep it from being made."""


def in_the_way(rows: Sequence[Row]) -> list[str]:
    """Checks that would fail whatever is reserved."""
    return [row.check for row in rows if row.colour == "red" and row.check not in OLD_CAPACITY]


def reserve_for(subject: Subject, aws: Aws, path: Path) -> None:
    """Ask the user, walk the zones, write the id into the stack file."""
    wanted = _wish(subject, aws)
    _say(f"to reserve: {wanted.nodes} x {wanted.instance_type} in {' or '.join(wanted.zones)}")
    _say(cost(wanted, _price(aws, subject)))
    # Before money is spent: a file that can't be changed would leave a reservation that nobody uses.
    _changed(path, {"capacity": {"mode": "reservation", "id": "cr-"}, "zone": subject.zone})
    click.confirm("make the reservation?", default=False, abort=True, err=True)
    made = reserve(aws, wanted, subject)
    if made.without:
        _say(f"no capacity in {', '.join(made.without)}")
    _say(f"{made.id}: {wanted.nodes} x {wanted.instance_type} in {made.zone} until {wanted.ends_at:%H:%M} UTC")
    _say(f"to end it: aws ec2 cancel-capacity-reservation --capacity-reservation-id {made.id} {aws.options()}")
    _write(path, {"capacity": {"mode": "reservation", "id": made.id}, "zone": made.zone})


def pin(asked: Asked, path: Path) -> None:
    """Write the image's digest into the stack file; ValueError where the registry doesn't tell it."""
    reference = asked.subject.plan.image.reference
    assert reference is not None, "pods on EC2 have an image"
    if "@" in reference:
        _say(f"{path}: {reference} is pinned already")
        return
    try:
        with sentences(reference):
            _, digest = digest_of(asked, reference)
    except urllib3.exceptions.HTTPError as error:
        raise ValueError(f"{reference}: its registry can't be asked ({type(error).__name__}); call again") from error
    if digest is None:
        raise ValueError(f"{reference}: its registry names no digest, so it can't be pinned; see the row `image`")
    _write(path, {"image": {"base": f"{reference}@{digest}"}})


def _wish(subject: Subject, aws: Aws) -> Wish:
    with sentences("zones and cluster"):
        kind = subject.instance_type.name
        offered = sorted(zones_offering(aws, [kind]).get(kind, ()))
        stands = karpenters.cluster(aws, subject.owner) is not None
    return wish(subject, offered, moves=not stands)


def _price(aws: Aws, subject: Subject) -> float | None:
    kind, region = subject.instance_type.name, subject.owner.region
    try:
        now = on_demand_price(aws, kind, region)
    except ClientError:
        now = None
    return now if now is not None else usd_per_hour(kind, region)


def _write(path: Path, values: Mapping[str, Any]) -> None:
    write_whole(path, _changed(path, values).encode())
    _say(f"{path}: wrote {', '.join(f'platform.{key}' for key in values)}")


def _changed(path: Path, values: Mapping[str, Any]) -> str:
    return with_platform(path.read_text(), values, str(path))


def _say(line: str) -> None:
    # Beside the rows, which a program may read.
    click.echo(line, err=True)
