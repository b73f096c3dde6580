"""Prices now against the dated file."""

from datetime import date

from workloads.operations.preflight.rows import Row, green, grey, red

TOLERANCE = 0.02
"""Predictions carry wider ranges than this; AWS changes prices by whole steps."""


def on_demand(type_name: str, now: float | None, filed: float | None, read_on: date, region: str) -> Row:
    """`now`: of the Price List API. `filed`: of the catalogue, None where it has none for the region."""
    check = "price"
    if now is None:
        return grey(
            check, f"the price list has none for {type_name} in {region}", "look in the console before you rent"
        )
    if filed is None:
        return green(check, f"{type_name} costs {now:.4g} USD an hour in {region}; the catalogue has no price there")
    if abs(now - filed) > TOLERANCE * filed:
        return red(
            check,
            f"{type_name} costs {now:.4g} USD an hour in {region} now, and {filed:.4g} in the catalogue of {read_on}",
            "correct workloads/catalogue/prices.py: budget and predicted cost stand on it",
        )
    return green(check, f"{type_name} costs {now:.4g} USD an hour in {region}, as the catalogue of {read_on} says")


def spot(type_name: str, zone: str, now: float | None, on_demand_price: float | None) -> Row:
    """What spot costs in the zone at this moment; it may change by the hour."""
    check = "spot price"
    if now is None:
        return red(
            check, f"EC2 has sold no spot {type_name} in {zone} of late", "take another zone, or capacity.mode onDemand"
        )
    against = "" if on_demand_price is None else f", {now / on_demand_price:.0%} of on demand"
    return green(check, f"{type_name} costs {now:.4g} USD an hour in {zone} now{against}")
