"""Addresses for nodes and their pods, and where a file system stands."""

from dataclasses import dataclass
from ipaddress import IPv4Network

from workloads.operations.preflight.rows import Row, green, grey, red

RESERVED = 5
"""Addresses of a subnet that AWS keeps for itself."""


def addresses(free: int | None, vpc_cidr: str, nodes: int, per_node: int) -> Row:
    """`free`: of the stack's GPU subnet; None: it isn't made yet, and will be half of the VPC."""
    check = "addresses"
    made = "" if free is not None else "once it is made, "
    left = free if free is not None else IPv4Network(vpc_cidr).num_addresses // 2 - RESERVED
    needed = nodes * per_node
    figures = f"{made}the GPU subnet has {left} free, {nodes} nodes hold up to {needed}"
    if left < needed:
        return red(check, figures, "take a wider platform.vpcCidr, or fewer nodes")
    return green(check, figures)


@dataclass(frozen=True, kw_only=True)
class FileSystem:
    """A Lustre file system of the stack."""

    id: str
    version: str
    zone: str


def file_system(found: FileSystem | None, zone: str, version: str) -> Row:
    """The stack's own file system is of the version that the clients mount, and in the nodes' zone."""
    check = "file system"
    if found is None:
        return grey(
            check,
            f"FSx answers, but says only at creation whether {zone} has Lustre {version}",
            "if `pulumi up` is refused there, take another platform.zone",
        )
    if found.version != version:
        return red(
            check,
            f"{found.id} is of Lustre {found.version}, and clients of {version} can't mount it",
            f"aws fsx update-file-system --file-system-id {found.id} --file-system-type-version {version}",
        )
    if found.zone != zone:
        return red(check, f"{found.id} is in {found.zone}, the nodes in {zone}", f"set platform.zone to {found.zone}")
    return green(check, f"{found.id} is of Lustre {version} in {zone}")
