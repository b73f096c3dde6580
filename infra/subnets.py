"""How the VPC's addresses are divided: a pure plan, no resource."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network


@dataclass(frozen=True, kw_only=True)
class Subnet:
    """One subnet: where, which addresses, and whether it has a public route."""

    zone: str
    cidr: str
    public: bool


@dataclass(frozen=True, kw_only=True)
class SubnetPlan:
    """Public and private subnets of two zones; the GPU zone's private one is half of the VPC."""

    gpu_private: Subnet
    gpu_public: Subnet
    other_private: Subnet
    other_public: Subnet

    @property
    def all(self) -> tuple[Subnet, ...]:
        """The four, GPU zone first."""
        return (self.gpu_private, self.gpu_public, self.other_private, self.other_public)


def plan_subnets(vpc_cidr: str, gpu_zone: str, other_zone: str) -> SubnetPlan:
    """Divides a /16 or /17.

    GPU nodes: the first half, because each EFA node holds many warm addresses and all GPU nodes stand in one
    subnet (EFA doesn't route). System nodes and the control plane's interfaces in the other zone: an eighth
    (a /19 or /20). Public: a 256th (/24 or /25) each, which the NAT gateway shares with nobody.
    """
    assert gpu_zone != other_zone, "EKS wants two zones"
    vpc = IPv4Network(vpc_cidr)
    halves = list(vpc.subnets(prefixlen_diff=1))
    eighths = list(halves[1].subnets(prefixlen_diff=2))
    small = list(eighths[3].subnets(prefixlen_diff=5))
    return SubnetPlan(
        gpu_private=Subnet(zone=gpu_zone, cidr=str(halves[0]), public=False),
        gpu_public=Subnet(zone=gpu_zone, cidr=str(small[0]), public=True),
        other_private=Subnet(zone=other_zone, cidr=str(eighths[0]), public=False),
        other_public=Subnet(zone=other_zone, cidr=str(small[1]), public=True),
    )


def second_zone(gpu_zone: str, control_plane_zones: Sequence[str]) -> str:
    """The first other zone by name, so that every run picks the same.

    ValueError when the GPU zone can't hold a control plane's interface, or the region has no second zone.
    """
    if gpu_zone not in control_plane_zones:
        raise ValueError(
            f"topolab:platform.zone = {gpu_zone!r}: EKS has no control plane there; "
            f"take one of {', '.join(sorted(control_plane_zones)) or 'another region'}"
        )
    others = sorted(set(control_plane_zones) - {gpu_zone})
    if not others:
        raise ValueError(
            f"topolab:platform.zone = {gpu_zone!r}: EKS needs a second zone and this account sees none "
            "in the region; take another region"
        )
    return others[0]
