"""Against moto, whose instance types were read from EC2."""

import json

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from tests.workloads.operations.preflight.asking import aws
from workloads.catalogue.instances import INSTANCE_TYPES
from workloads.catalogue.prices import ON_DEMAND
from workloads.operations.preflight.judgements.capacity import facts
from workloads.operations.preflight.offers import Market, offers, survey
from workloads.operations.preflight.questions import capacity

CODES = {"G": "L-DB2E81BA", "P": "L-417A185B"}


@pytest.fixture
def account(monkeypatch):
    """An account whose quotas of G and P vCPUs a test sets; moto knows neither quotas nor prices."""
    quotas = {CODES["G"]: 64.0, CODES["P"]: 0.0}
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")

    def quota(name, arguments):
        if name != "GetServiceQuota":
            raise AssertionError(name)
        return {"Quota": {"Value": quotas.get(arguments["QuotaCode"], 0.0)}}

    def prices(name, arguments):
        kind = next(one["Value"] for one in arguments["Filters"] if one["Field"] == "instanceType")
        if kind == "p5.48xlarge":
            raise ClientError({"Error": {"Code": "AccessDeniedException"}}, name)
        dimension = {"unit": "Hrs", "pricePerUnit": {"USD": str(ON_DEMAND.usd_per_hour[kind] * 2)}}
        return {"PriceList": [json.dumps({"terms": {"OnDemand": {"a": {"priceDimensions": {"b": dimension}}}}})]}

    monkeypatch.setattr(aws().client("service-quotas"), "_make_api_call", quota)
    monkeypatch.setattr(aws().client("pricing"), "_make_api_call", prices)
    with mock_aws():
        yield quotas


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("kind", INSTANCE_TYPES, ids=lambda kind: kind.name)
def test_the_catalogue_agrees_with_what_ec2_said_of_each_type(kind):
    (found,) = aws().client("ec2").describe_instance_types(InstanceTypes=[kind.name])["InstanceTypes"]
    row = facts(kind, capacity._facts(found))
    assert (row.colour, row.sentence.split(" has ")[0]) == ("green", kind.name)


def by_topology(market):
    return {one.topology: one for one in offers(market)}


@pytest.mark.usefixtures("account")
def test_what_quota_and_zones_allow_is_offered_with_todays_price_and_the_cheapest_first():
    market, unanswered = survey(aws(), limit_s=30)
    found = by_topology(market)
    cheap = found["g6e8xl-2x1-efa1"]
    assert (cheap.runs, cheap.needed_vcpus, cheap.free_vcpus) == (True, 64, 64.0)
    assert cheap.usd_per_hour == pytest.approx(4 * 4.52856)
    assert cheap.zones == ("us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d")
    assert next(iter(found.values())).runs
    big = found["g6e8xl-16x1-efa1"]
    assert (big.runs, big.why_not) == (False, "quota L-DB2E81BA: 64 of 512 vCPUs free")
    assert [row.check for row in unanswered] == ["price of p5.48xlarge"]
    # Where the list may not be read, the dated file has a price.
    assert found["p548xl-1x8-efa32"].usd_per_hour == pytest.approx(55.04)


def test_what_runs_already_isnt_free(account):
    account[CODES["G"]] = 100.0
    ec2 = aws().client("ec2")
    ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1, InstanceType="g6e.8xlarge")
    market, _ = survey(aws(), limit_s=30)
    assert market.free_vcpus[CODES["G"]] == 68.0


def test_what_couldnt_be_learnt_is_unknown_not_no():
    nothing_known = by_topology(Market(region="us-east-1"))["g6e8xl-2x1-efa1"]
    assert (nothing_known.runs, nothing_known.why_not) == (None, "quota or zones couldn't be read")
    assert nothing_known.usd_per_hour == pytest.approx(9.05712)
    elsewhere = Market(region="eu-west-9", zones={"g6e.8xlarge": set()}, free_vcpus={CODES["G"]: 64.0})
    row = by_topology(elsewhere)["g6e8xl-2x1-efa1"]
    assert (row.runs, row.why_not, row.usd_per_hour) == (False, "eu-west-9 has no g6e.8xlarge", None)


def test_local_machines_are_nobodys_offer():
    assert not [one for one in offers(Market(region="us-east-1")) if one.topology.startswith(("cpu-", "h200"))]
