"""`topo verify-destroyed`: the account is asked, not the state."""

from collections.abc import Sequence

import click

from workloads.cli.leftover_table import document, show
from workloads.cli.output import as_json, print_json
from workloads.cli.stack_place import name_of, place_of, project_name
from workloads.operations.leftovers.aws import Aws, RefusedError
from workloads.operations.leftovers.find import find
from workloads.operations.leftovers.inventory import Inventory
from workloads.operations.leftovers.ownership import Owner
from workloads.operations.leftovers.patience import Patience
from workloads.operations.leftovers.sweep import LeftoverError, sweep

LIMIT_S = 1800
"""As the guards of `pulumi destroy`."""


@click.command("verify-destroyed")
@click.argument("stack", metavar="STACK")
@click.option("--region", metavar="REGION", help="Where to look; the stack file's.")
@click.option("--profile", metavar="NAME", help="Of the AWS configuration; the stack file's.")
@click.option("--project", metavar="NAME", help="The Pulumi project; that of Pulumi.yaml.")
@click.option("--account", metavar="ID", help="Refuse credentials of any other account.")
@click.option("--sweep", "sweeps", is_flag=True, help="Remove what Karpenter and the CNI left, then look again.")
@click.option("--yes", is_flag=True, help="Sweep without asking.")
@as_json
def command(
    *,
    stack: str,
    region: str | None,
    profile: str | None,
    project: str | None,
    account: str | None,
    sweeps: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Prove that an account holds nothing of a stack any more.

    STACK is a name or a stack file; a stack whose file is gone needs --region. Everything that bears the
    stack's tags or its cluster's is listed with the command that removes it. Exit code 0 only where nothing is
    left but what is kept by choice; an unanswered question proves nothing, so it is 1 too.
    """
    place = place_of(stack)
    owner = Owner(
        project=project or project_name(), stack=name_of(stack), region=_region(stack, region or place.region)
    )
    aws = Aws(region=owner.region, profile=profile or place.profile)
    found_account = _allowed(aws.account(), (account,) if account else place.accounts)
    inventory = find(aws, owner)
    if sweeps and inventory.sweepable:
        if not yes:
            _confirm(inventory, found_account, owner)
        _sweep(aws, owner)
        inventory = find(aws, owner)
    if as_json:
        print_json(document(inventory, found_account, owner))
    else:
        show(inventory, found_account, owner)
    return 0 if inventory.is_destroyed else 1


def _region(stack: str, region: str | None) -> str:
    if region is None:
        raise ValueError(
            f"{stack}: no stack file here names aws:region (a local machine's makes nothing in AWS); give --region"
        )
    return region


def _allowed(account: str, allowed: Sequence[str]) -> str:
    """An empty account that isn't the stack's would prove nothing."""
    if allowed and account not in allowed:
        raise RefusedError(
            f"these credentials are of account {account}, and the stack stands in {', '.join(allowed)}; "
            "use that account's credentials"
        )
    return account


def _confirm(inventory: Inventory, account: str, owner: Owner) -> None:
    names = ", ".join(f"{one.kind} {one.id}" for one in inventory.sweepable)
    click.confirm(f"account {account}, {owner.region}: remove {names}?", abort=True, err=True)


def _sweep(aws: Aws, owner: Owner) -> None:
    try:
        sweep(aws, owner, Patience(limit_s=LIMIT_S, say=_say))
    except LeftoverError as error:
        # The listing that follows names it too, with the rest.
        _say(str(error))


def _say(line: str) -> None:
    click.echo(line, err=True)
