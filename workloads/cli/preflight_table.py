"""What `topo preflight` prints."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

from workloads.cli.output import print_table
from workloads.operations.preflight.checks import is_ready
from workloads.operations.preflight.offers import Offer
from workloads.operations.preflight.rows import Colour, Row
from workloads.operations.preflight.subject import Subject

_STYLE: Mapping[Colour, Mapping[str, Any]] = {
    "green": {"fg": "green"},
    "red": {"fg": "red", "bold": True},
    "grey": {"fg": "bright_black"},
}


def document(subject: Subject, rows: Sequence[Row]) -> dict[str, Any]:
    """One stack's rows for programs."""
    return {
        "stack": subject.owner.stack,
        "region": subject.owner.region,
        "topology": subject.plan.topology.name,
        "ready": is_ready(rows),
        "checks": [asdict(row) for row in rows],
    }


def show(subject: Subject, rows: Sequence[Row]) -> None:
    """One stack's rows for people: the table, then what to do."""
    title = f"stack {subject.owner.stack}: {subject.plan.topology.name} in {subject.zone}"
    print_table(("", "check", "found"), [(row.colour, row.check, row.sentence) for row in rows], title=title)
    _show_remedies(rows)
    counted = Counter(row.colour for row in rows)
    summary = ", ".join(f"{counted[colour]} {colour}" for colour in ("green", "red", "grey"))
    click.echo(f"{summary}: {'`pulumi up` may go on' if is_ready(rows) else 'mend what is red first'}")


def market_document(region: str, offers: Sequence[Offer], unanswered: Sequence[Row]) -> dict[str, Any]:
    """The catalogue against a region, for programs."""
    return {
        "region": region,
        "offers": [asdict(one) for one in offers],
        "unanswered": [asdict(row) for row in unanswered],
    }


def show_market(region: str, offers: Sequence[Offer], unanswered: Sequence[Row]) -> None:
    """The catalogue against a region, for people."""
    columns = ("topology", "nodes", "today", "vCPUs", "free", "free spot", "USD/h", "zones")
    print_table(columns, [_cells(one, region) for one in offers], title=f"{region}, on demand")
    for (sentence, remedy), checks in _by_cause(unanswered).items():
        click.echo(f"{', '.join(checks)}: {sentence}" + (f"; {remedy}" if remedy else ""))
    click.echo("quota and zones allow what says yes; whether EC2 has the capacity, `--reserve` of a stack tells")


def _cells(one: Offer, region: str) -> tuple[str, ...]:
    today = {True: "yes", None: "unknown"}.get(one.runs, f"no: {one.why_not}")
    zones = "?" if one.zones is None else " ".join(zone.removeprefix(region) for zone in one.zones)
    return (
        one.topology,
        f"{one.nodes} x {one.instance_type}",
        today,
        str(one.needed_vcpus),
        _figure(one.free_vcpus, 0),
        _figure(one.free_spot_vcpus, 0),
        _figure(one.usd_per_hour, 2),
        zones,
    )


def _figure(value: float | None, digits: int) -> str:
    return "?" if value is None else f"{value:.{digits}f}"


def _by_cause(rows: Sequence[Row]) -> Mapping[tuple[str, str], list[str]]:
    """The checks by what was found and what to do: thirteen questions without a login fail for one reason."""
    causes: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        causes.setdefault((row.sentence, row.remedy), []).append(row.check)
    return causes


def _show_remedies(rows: Sequence[Row]) -> None:
    """One line for each thing to do, red rows first; it may mend several."""
    mends: dict[tuple[Colour, str], list[str]] = {}
    for row in sorted(rows, key=lambda row: row.colour != "red"):
        if row.remedy:
            mends.setdefault((row.colour, row.remedy), []).append(row.check)
    for (colour, remedy), checks in mends.items():
        click.echo(f"{click.style(', '.join(checks), **_STYLE[colour])}: {remedy}")
