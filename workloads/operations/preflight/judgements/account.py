"""Whose account it is, and what stands there under the stack's name already."""

from collections.abc import Mapping, Sequence

from workloads.operations.leftovers.ownership import Owner, Tags, is_anothers, is_of_stack
from workloads.operations.preflight.rows import Row, green, red


def identity(account: str, arn: str, allowed: Sequence[str]) -> Row:
    """The caller is of an allowed account and of a partition whose endpoints topolab knows."""
    check, partition = "identity", arn.split(":")[1]
    if allowed and account not in allowed:
        return red(
            check,
            f"these credentials are of account {account} ({arn}), and platform.allowedAccounts names "
            f"{', '.join(allowed)}",
            "use other credentials, or allow the account",
        )
    if partition != "aws":
        return red(check, f"{arn} is of partition {partition!r}", "use a commercial region: no other is known here")
    return green(check, f"account {account} as {arn.split(':', 5)[5]}")


def region(name: str, opt_in: str | None) -> Row:
    """`opt_in`: EC2's word for the region in this account; None: EC2 knows no such region."""
    check = "region"
    if opt_in is None:
        return red(check, f"EC2 knows no region {name}", "correct aws:region")
    if opt_in == "not-opted-in":
        return red(
            check,
            f"the account hasn't enabled {name}",
            f"enable it: aws account enable-region --region-name {name} (minutes to hours)",
        )
    return green(check, f"{name} is enabled")


def zone(
    wanted: str, zones: Mapping[str, tuple[str, str]], offered: Sequence[str], type_name: str, excluded: Sequence[str]
) -> Row:
    """`zones`: zone to its id and state. `offered`: zones that have the type. `excluded`: ids without EKS."""
    check = "zone"
    fit = sorted(name for name in offered if name in zones and zones[name][0] not in excluded)
    elsewhere = f"set platform.zone to {' or '.join(fit)}" if fit else "take another region"
    if wanted not in zones:
        return red(check, f"this account sees no zone {wanted}", elsewhere)
    zone_id, state = zones[wanted]
    if state != "available":
        return red(check, f"{wanted} is {state}", elsewhere)
    if zone_id in excluded:
        return red(check, f"EKS has no control plane in {wanted} ({zone_id})", elsewhere)
    if wanted not in offered:
        return red(check, f"EC2 offers no {type_name} in {wanted}", elsewhere)
    return green(check, f"{wanted} ({zone_id}) offers {type_name}")


def name(owner: Owner, cluster_tags: Tags | None) -> Row:
    """`cluster_tags`: of the EKS cluster that has the stack's name; None: there is none."""
    check = "stack's name"
    if cluster_tags is None:
        return green(check, f"no cluster is called {owner.cluster}")
    if is_of_stack(cluster_tags, owner):
        return green(check, f"cluster {owner.cluster} is this stack's own")
    whose = "belongs to another stack" if is_anothers(cluster_tags, owner) else "isn't topolab's"
    return red(check, f"cluster {owner.cluster} is there already and {whose}", "give the stack another name")


def records(bucket: str, answer: int, region_of_bucket: str | None, region_of_stack: str) -> Row:
    """`answer`: HTTP status of asking for the bucket as one of this account's."""
    check = "records bucket"
    if answer == 404:
        return red(check, f"there is no bucket {bucket}", "make it, or set platform.records to managed")
    if answer == 403:
        return red(
            check,
            f"bucket {bucket} is another account's, or these credentials may not list it",
            "name a bucket of this account, or set platform.records to managed",
        )
    if region_of_bucket not in (None, region_of_stack):
        return red(
            check,
            f"bucket {bucket} is in {region_of_bucket}, the stack in {region_of_stack}",
            "name a bucket of the stack's region: pods reach others over the NAT gateway, for money",
        )
    return green(check, f"{bucket} is this account's")


def managed_records() -> Row:
    """The stack makes its own bucket."""
    return green("records bucket", "the stack makes its own")
