"""How a walk is asked for, and which of the things that a killed engine forgot it can name."""

import pytest

from tests.e2e.providers.aws.table import KINDS
from tests.e2e.recovery import ASKED_FOR, IDEMPOTENT, LISTED, NAMED_BY_US, TAKES_OVER
from tests.e2e.walk import ROUNDS, rounds, seed
from tests.source import ROOT
from workloads.operations.leftovers.inventory import FILE_SYSTEM
from workloads.operations.leftovers.of_ec2 import KINDS as EC2


def test_rounds_and_seed_are_those_of_the_shell(monkeypatch):
    monkeypatch.setenv("SOAK_ROUNDS", "7")
    monkeypatch.setenv("SOAK_SEED", "33960")
    assert (rounds(), seed()) == (7, 33960)


def test_without_a_word_the_rounds_are_many_and_the_seed_is_another_each_time(monkeypatch):
    monkeypatch.delenv("SOAK_ROUNDS", raising=False)
    monkeypatch.delenv("SOAK_SEED", raising=False)
    assert rounds() == ROUNDS
    assert len({seed() for _ in range(20)}) > 1


def test_each_type_of_the_account_is_named_in_one_way_or_may_be_made_twice():
    ways = [*LISTED, *ASKED_FOR, *NAMED_BY_US, *IDEMPOTENT]
    assert sorted(ways) == sorted(set(ways))
    assert set(ways) == set(KINDS)


def test_what_takes_over_after_a_kill_is_what_the_readme_says():
    (words,) = (f"{name}={value} pulumi up" for name, value in TAKES_OVER.items())
    assert words in [line.strip() for line in (ROOT / "README.md").read_text().splitlines()]


def test_what_the_listing_finds_is_called_as_the_listing_calls_it():
    assert set(LISTED.values()) <= {FILE_SYSTEM, *(kind.kind for kind in EC2)}


@pytest.mark.parametrize(
    ("kind", "inputs", "identifier"),
    [
        (
            "aws:ec2/route:Route",
            {"routeTableId": "rtb-1", "destinationCidrBlock": "0.0.0.0/0"},
            "r-rtb-11080289494_0.0.0.0/0",
        ),
        ("aws:eks/addon:Addon", {"clusterName": "c", "addonName": "coredns"}, "c:coredns"),
        ("aws:iam/policy:Policy", {"name": "p"}, "arn:aws:iam::123456789012:policy/p"),
        ("aws:iam/rolePolicy:RolePolicy", {"role": "r", "name": "p"}, "r:p"),
    ],
)
def test_an_identifier_is_what_pulumi_import_wants(kind, inputs, identifier):
    assert NAMED_BY_US[kind](inputs) == identifier
