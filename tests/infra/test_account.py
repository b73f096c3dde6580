"""Whose credentials a stack accepts."""

import pytest

from infra.account import Account, checked_account

ARN = "arn:aws:sts::123456789012:assumed-role/someone/session"


def test_any_account_may_where_none_is_named():
    assert checked_account("123456789012", ARN, ()) == Account(id="123456789012", partition="aws")


def test_an_account_that_is_not_allowed_is_refused_with_who_asked():
    with pytest.raises(ValueError, match=r"allowedAccounts = 999999999999: .*123456789012.*assumed-role/someone"):
        checked_account("123456789012", ARN, ("999999999999",))


def test_another_partition_is_refused_by_name():
    with pytest.raises(ValueError, match="partition 'aws-us-gov'"):
        checked_account("123456789012", ARN.replace("arn:aws:", "arn:aws-us-gov:"), ())
