"""Prices now against the dated file."""

import json
from datetime import timedelta

from tests.workloads.operations.preflight.asking import NOW, ask, nothing, only, subject
from workloads.operations.preflight.judgements import money as judge
from workloads.operations.preflight.questions.money import price, spot_price


def listed(usd):
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": str(usd)}}
    product = {"terms": {"OnDemand": {"a.b": {"priceDimensions": {"a.b.c": dimension}}}}}
    return [("pricing", "get_products", {"PriceList": [json.dumps(product)]})]


def test_a_price_as_filed_is_green():
    row = only(ask(price, listed(4.52856)))
    assert (row.colour, row.sentence) == (
        "green",
        "g6e.8xlarge costs 4.529 USD an hour in us-east-1, as the catalogue of 2026-07-06 says",
    )


def test_a_price_that_moved_is_red_because_budgets_stand_on_it():
    row = only(ask(price, listed(6.0)))
    assert (row.colour, "6 USD an hour in us-east-1 now, and 4.529 in the catalogue" in row.sentence) == ("red", True)


def test_an_unknown_price_or_one_that_may_not_be_read_is_grey():
    assert only(ask(price, [("pricing", "get_products", nothing("PriceList"))])).colour == "grey"
    reserved = json.dumps({"terms": {"Reserved": {}}})
    assert only(ask(price, [("pricing", "get_products", {"PriceList": [reserved]})])).colour == "grey"
    assert only(ask(price, [("pricing", "get_products", "AccessDeniedException")])).colour == "grey"


def test_where_the_catalogue_has_no_price_the_lists_one_is_said():
    row = judge.on_demand("g6e.8xlarge", 5.0, None, NOW.date(), "eu-west-1")
    assert (row.colour, "the catalogue has no price there" in row.sentence) == ("green", True)


SPOT = {"capacity": {"mode": "spot"}}


def test_the_newest_spot_price_counts():
    history = [
        {"SpotPrice": "9.0", "Timestamp": NOW - timedelta(minutes=50)},
        {"SpotPrice": "1.5", "Timestamp": NOW - timedelta(minutes=5)},
    ]
    row = only(
        ask(spot_price, [("ec2", "describe_spot_price_history", {"SpotPriceHistory": history})], subject(**SPOT))
    )
    assert (row.colour, row.sentence) == (
        "green",
        "g6e.8xlarge costs 1.5 USD an hour in us-east-1b now, 33% of on demand",
    )


def test_no_spot_price_is_red_one_that_may_not_be_read_grey_and_on_demand_asks_nothing():
    empty = [("ec2", "describe_spot_price_history", nothing("SpotPriceHistory"))]
    assert only(ask(spot_price, empty, subject(**SPOT))).colour == "red"
    denied = [("ec2", "describe_spot_price_history", "UnauthorizedOperation")]
    assert only(ask(spot_price, denied, subject(**SPOT))).colour == "grey"
    assert ask(spot_price, []) == []
