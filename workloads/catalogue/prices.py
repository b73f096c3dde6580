"""On-demand Linux prices, dated. A price that is not here is not known and never guessed."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, kw_only=True)
class PriceList:
    """USD per hour and instance in one region, as read on one day."""

    region: str
    read_on: date
    source: str
    usd_per_hour: dict[str, float]


ON_DEMAND = PriceList(
    region="us-east-1",
    read_on=date(2026, 7, 6),
    source="Karpenter provider AWS v1.14.1, generated on-demand price table",
    usd_per_hour={
        "g6e.8xlarge": 4.52856,
        "g6e.12xlarge": 10.49264,
        "g6e.24xlarge": 15.06559,
        "g6e.48xlarge": 30.13118,
        "p4d.24xlarge": 21.957642,
        "p5.48xlarge": 55.04,
        "p5en.48xlarge": 63.296,
        "m7i.xlarge": 0.2016,
    },
)


def usd_per_hour(instance_type: str, region: str) -> float | None:
    """On-demand price of one instance; None where it isn't known (other regions, local machines)."""
    return ON_DEMAND.usd_per_hour.get(instance_type) if region == ON_DEMAND.region else None
