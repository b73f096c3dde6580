"""What `topo verify-destroyed` prints."""

from typing import Any

import click

from workloads.cli.output import print_table
from workloads.operations.leftovers.inventory import Inventory
from workloads.operations.leftovers.ownership import Owner


def document(inventory: Inventory, account: str, owner: Owner, *, account_is_named: bool) -> dict[str, Any]:
    """For programs. `accountIsNamed`: by the stack file or --account; else it is that of the credentials at hand."""
    return {
        "account": account,
        "accountIsNamed": account_is_named,
        "region": owner.region,
        "cluster": owner.cluster,
        "destroyed": inventory.is_destroyed,
        "left": [
            {
                "kind": one.kind,
                "id": one.id,
                "state": one.state,
                "usdPerHour": one.usd_per_hour,
                "sweepable": one.sweepable,
                "remove": one.remove,
            }
            for one in inventory.left
        ],
        "kept": [
            {"kind": one.kind, "id": one.id, "reason": one.reason, "remove": one.remove} for one in inventory.kept
        ],
        "unproven": list(inventory.unproven),
    }


def show(inventory: Inventory, account: str, owner: Owner) -> None:
    """For people."""
    place = f"account {account}, {owner.region}"
    if inventory.left:
        print_table(
            ("left", "id", "state", "USD/h", "removed by"),
            [(one.kind, one.id, one.state, _price(one.usd_per_hour), one.remove) for one in inventory.left],
            title=f"{place}: {len(inventory.left)} left of stack {owner.stack}",
        )
    if inventory.kept:
        print_table(
            ("kept by choice", "id", "why", "removed by"),
            [(one.kind, one.id, one.reason, one.remove) for one in inventory.kept],
        )
    for sentence in inventory.unproven:
        click.echo(f"not proven: {sentence}")
    if inventory.is_destroyed:
        but = " but what is kept by choice" if inventory.kept else ""
        click.echo(f"{place}: nothing is left of stack {owner.stack}{but}")
    elif inventory.sweepable and all(one.kind != "EKS cluster" for one in inventory.left):
        click.echo(f"`./topo verify-destroyed {owner.stack} --sweep` removes what Karpenter and the CNI left")


def _price(usd_per_hour: float | None) -> str:
    return "" if usd_per_hour is None else f"{usd_per_hour:.2f}"
