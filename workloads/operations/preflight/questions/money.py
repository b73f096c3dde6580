"""What the type costs now."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from workloads.catalogue.prices import ON_DEMAND, usd_per_hour
from workloads.operations.leftovers.aws import Aws
from workloads.operations.preflight.judgements import money as judge
from workloads.operations.preflight.questions.asked import Asked
from workloads.operations.preflight.rows import Row


def price(asked: Asked) -> Iterator[Row]:
    """On demand, of the Price List API."""
    kind, region = asked.subject.instance_type.name, asked.subject.owner.region
    now = on_demand_price(asked.aws, kind, region)
    yield judge.on_demand(kind, now, usd_per_hour(kind, region), ON_DEMAND.read_on, region)


def spot_price(asked: Asked) -> Iterator[Row]:
    """Where spot is bought: its newest price in the zone."""
    if asked.subject.platform.capacity.mode != "spot":
        return
    subject, kind = asked.subject, asked.subject.instance_type.name
    answer = asked.aws.client("ec2").describe_spot_price_history(
        InstanceTypes=[kind],
        AvailabilityZone=subject.zone,
        ProductDescriptions=["Linux/UNIX"],
        StartTime=subject.now - timedelta(hours=1),
    )
    newest = max(answer["SpotPriceHistory"], key=lambda one: one["Timestamp"], default=None)
    now = None if newest is None else float(newest["SpotPrice"])
    yield judge.spot(kind, subject.zone, now, usd_per_hour(kind, subject.owner.region))


def on_demand_price(aws: Aws, kind: str, region: str) -> float | None:
    """USD per hour of one Linux instance; None where the list has none."""
    wanted = {
        "instanceType": kind,
        "regionCode": region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }
    filters = [{"Type": "TERM_MATCH", "Field": key, "Value": value} for key, value in wanted.items()]
    answer = aws.client("pricing").get_products(ServiceCode="AmazonEC2", Filters=filters, MaxResults=1)
    return next((_usd(json.loads(text)) for text in answer["PriceList"]), None)


def _usd(product: Any) -> float | None:
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            if dimension["unit"] == "Hrs":
                return float(dimension["pricePerUnit"]["USD"])
    return None
