"""`topo preflight`: the account, before anything is made."""

from datetime import UTC, datetime
from pathlib import Path

import click

from workloads.catalogue.prices import ON_DEMAND
from workloads.cli.arms import planned
from workloads.cli.output import as_json, print_json
from workloads.cli.preflight_changes import in_the_way, pin, reserve_for
from workloads.cli.preflight_table import document, market_document, show, show_market
from workloads.cli.stack_outputs import stack_secret
from workloads.cli.stack_place import file_of, name_of, place_of, project_name
from workloads.operations.leftovers.aws import Aws
from workloads.operations.leftovers.ownership import Owner
from workloads.operations.preflight.checks import LIMIT_S, QUICK, is_ready, preflight
from workloads.operations.preflight.offers import offers, survey
from workloads.operations.preflight.questions.asked import Asked
from workloads.operations.preflight.questions.web import Web
from workloads.operations.preflight.subject import Subject


@click.command("preflight")
@click.argument("stack", metavar="[STACK]", required=False)
@click.option("--region", metavar="REGION", help="Without a stack: where to look.")
@click.option("--profile", metavar="NAME", help="Of the AWS configuration; the stack file's.")
@click.option("--project", metavar="NAME", help="The Pulumi project; that of Pulumi.yaml.")
@click.option(
    "--limit", type=float, default=LIMIT_S, show_default=True, metavar="SECONDS", help="What is late is grey."
)
@click.option("--pin", "pins", is_flag=True, help="Write the image's digest into the stack file.")
@click.option("--reserve", "reserves", is_flag=True, help="Reserve the nodes, after a question, and write it there.")
@as_json
def command(
    *,
    stack: str | None,
    region: str | None,
    profile: str | None,
    project: str | None,
    limit: float,
    pins: bool,
    reserves: bool,
    as_json: bool,
) -> int:
    """Check an account before anything is made in it.

    STACK is a name or a stack file. Nothing is made or changed but by --pin and --reserve. Green: as the stack needs
    it; red: `pulumi up` or the run would fail, with the remedy; grey: it couldn't be learnt. Exit code 1 where a row
    is red.

    Without STACK: which topologies of the catalogue the account can run today, in which zones, at what price.
    Exit code 1 where it can run none.
    """
    if stack is None:
        if pins or reserves:
            raise ValueError(
                f"{'--pin' if pins else '--reserve'}: there is no stack file to write into; name the STACK"
            )
        return _market(region or ON_DEMAND.region, profile, limit, as_json=as_json)
    if region is not None:
        raise ValueError(f"--region {region}: {file_of(stack)} names its own; leave the option out")
    return _stack(
        _subject(stack, profile, project), limit, file_of(stack), pins=pins, reserves=reserves, as_json=as_json
    )


def _market(region: str, profile: str | None, limit: float, *, as_json: bool) -> int:
    market, unanswered = survey(Aws(region=region, profile=profile, config=QUICK), limit_s=limit)
    found = offers(market)
    if as_json:
        print_json(market_document(region, found, unanswered))
    else:
        show_market(region, found, unanswered)
    return 0 if any(one.runs for one in found) else 1


def _stack(subject: Subject, limit: float, path: Path, *, pins: bool, reserves: bool, as_json: bool) -> int:
    token = stack_secret(subject.owner.stack, "hfToken") if subject.plan.needs_hf_token else None
    aws = Aws(region=subject.owner.region, profile=subject.profile, config=QUICK)
    rows = preflight(subject, aws, Web(), token, limit_s=limit)
    if as_json:
        print_json(document(subject, rows))
    else:
        show(subject, rows)
    if pins:
        pin(Asked(subject=subject, aws=aws, arn=None, web=Web(), hf_token=None), path)
    if reserves:
        wrong = in_the_way(rows)
        if wrong:
            raise ValueError(f"--reserve: {', '.join(wrong)} would fail on reserved nodes too; mend that first")
        reserve_for(subject, aws, path)
    return 0 if is_ready(rows) else 1


def _subject(stack: str, profile: str | None, project: str | None) -> Subject:
    path, place = file_of(stack), place_of(stack)
    plan = planned(str(path))
    if plan.topology.machine.is_local:
        raise ValueError(f"{path}: {plan.topology.name} runs on a local machine and makes nothing in AWS")
    if place.region is None:
        raise ValueError(f"{path}: aws:region is missing; name the region of platform.zone {plan.platform.zone}")
    owner = Owner(project=project or project_name(), stack=name_of(stack), region=place.region)
    return Subject(owner=owner, plan=plan, profile=profile or place.profile, now=datetime.now(UTC))
