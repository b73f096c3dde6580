"""`topo verify-destroyed`: the account is asked, not the state."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from workloads.cli.leftover_table import document, show
from workloads.cli.output import as_json, print_json
from workloads.cli.stack_place import file_of, name_of, place_of, project_name
from workloads.operations.leftovers.aws import AT_ONCE, Aws, RefusedError
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
    left but what is kept by choice; an unanswered question proves nothing, so it is 1 too. So is a name that has
    neither a stack file here nor any trace in the account: an empty answer about it could be that of a mistyped
    name, and who really means it puts the file back (a bucket that was kept is trace enough).
    """
    file, place = file_of(stack), place_of(stack)
    name = _name(stack, file)
    owner = Owner(project=project or project_name(), stack=name, region=_region(file, region, place.region))
    _say(f"asking AWS in {owner.region} whose credentials these are")
    named, profile = (account,) if account else place.accounts, profile or place.profile
    found_account = _allowed(Aws(region=owner.region, profile=profile, config=AT_ONCE).account(), named)
    aws = Aws(region=owner.region, profile=profile)
    _say(f"account {found_account}, {owner.region}: asking for all that bears the name of stack {owner.stack}")
    inventory = _known(find(aws, owner), file, found_account, owner)
    if sweeps and inventory.sweepable and (yes or _confirmed(inventory, found_account, owner)):
        _sweep(aws, owner)
        inventory = find(aws, owner)
    if as_json:
        print_json(document(inventory, found_account, owner, account_is_named=bool(named)))
    else:
        show(inventory, found_account, owner)
    if not named:
        _say(_nobody_named(found_account))
    return 0 if inventory.is_destroyed else 1


def _name(stack: str, file: Path) -> str:
    if stack == str(file) and not file.exists():
        raise ValueError(
            f"{stack}: there is no such file; give a stack file, or the name of a stack and, where its file is gone, "
            "--region"
        )
    return name_of(stack)


def _region(file: Path, asked: str | None, stated: str | None) -> str:
    """Another region than the file's would be empty of the stack, and prove nothing."""
    if asked and stated and asked != stated:
        raise ValueError(
            f"--region {asked}: {file} says aws:region {stated}, so the stack stands there; leave --region out, "
            "or mend the file"
        )
    region = asked or stated
    if region is None:
        why = "it names no aws:region (a local machine's makes nothing in AWS)" if file.exists() else "it isn't here"
        raise ValueError(f"stack file {file}: {why}; give --region")
    return region


def _allowed(account: str, allowed: Sequence[str]) -> str:
    """An empty account that isn't the stack's would prove nothing."""
    if allowed and account not in allowed:
        raise RefusedError(
            f"these credentials are of account {account}, and the stack stands in {', '.join(allowed)}; "
            "use that account's credentials"
        )
    return account


def _known(inventory: Inventory, file: Path, account: str, owner: Owner) -> Inventory:
    """The inventory, or a doubt in it where nothing says that there ever was such a stack."""
    if file.exists() or inventory.left or inventory.kept or inventory.unproven:
        return inventory
    doubt = (
        f"no stack file {file} here and no trace of {owner.stack} in account {account}, {owner.region}: was the name "
        "mistyped? If not, put the file back and ask again"
    )
    return replace(inventory, unproven=[doubt])


def _nobody_named(account: str) -> str:
    return (
        f"warning: nobody named the account: {account} is that of the credentials at hand, and another one could hold "
        "the stack; say which it is with --account ID, or platform.allowedAccounts in the stack file"
    )


def _confirmed(inventory: Inventory, account: str, owner: Owner) -> bool:
    names = ", ".join(f"{one.kind} {one.id}" for one in inventory.sweepable)
    agreed = click.confirm(f"account {account}, {owner.region}: remove {names}?", err=True)
    if not agreed:
        _say("nothing was swept")
    return agreed


def _sweep(aws: Aws, owner: Owner) -> None:
    try:
        sweep(aws, owner, Patience(limit_s=LIMIT_S, say=_say))
    except LeftoverError as error:
        # The listing that follows names it too, with the rest.
        _say(str(error))


def _say(line: str) -> None:
    click.echo(line, err=True)
