"""Whose credentials a stack accepts."""

import pulumi
import pytest

from infra.account import Account, checked_account
from tests.pulumi_engine import read_stack, run

ARN = "arn:aws:sts::123456789012:assumed-role/someone/session"


def test_any_account_may_where_none_is_named():
    assert checked_account("123456789012", ARN, ()) == Account(id="123456789012", partition="aws")


def test_an_account_that_is_not_allowed_is_refused_with_who_asked():
    with pytest.raises(ValueError, match=r"allowedAccounts = 999999999999: .*123456789012.*assumed-role/someone"):
        checked_account("123456789012", ARN, ("999999999999",))


def test_another_partition_is_refused_by_name():
    with pytest.raises(ValueError, match="partition 'aws-us-gov'"):
        checked_account("123456789012", ARN.replace("arn:aws:", "arn:aws-us-gov:"), ())


def test_spot_in_an_account_that_never_bought_so_is_refused_with_the_command_that_opens_it():
    spot = read_stack("dev").with_values(platform={"capacity": {"mode": "spot"}})
    with pytest.raises(pulumi.RunError, match=r"create-service-linked-role --aws-service-name spot\.amazonaws\.com"):
        run(spot, linked_roles=())
    assert run(spot).one("NodePool")


def test_an_account_is_asked_for_its_role_of_spot_by_stacks_on_spot_alone():
    assert "aws:iam/getRoles:getRoles" not in run(read_stack("dev"), linked_roles=()).invokes
