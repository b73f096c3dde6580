"""Whose account this is, and whether the stack may use it: pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Account:
    """The account and the partition that the credentials belong to."""

    id: str
    partition: str


def checked_account(account_id: str, caller_arn: str, allowed: Sequence[str]) -> Account:
    """The account of the caller; ValueError where the stack file doesn't allow it."""
    if allowed and account_id not in allowed:
        raise ValueError(
            f"topolab:platform.allowedAccounts = {', '.join(allowed)}: these credentials are of account "
            f"{account_id} ({caller_arn}); use other credentials or allow it"
        )
    partition = caller_arn.split(":")[1]
    if partition != "aws":
        raise ValueError(
            f"aws:region: these credentials are of partition {partition!r}; topolab knows the endpoints and "
            "prices of partition 'aws' alone, so use a commercial region"
        )
    return Account(id=account_id, partition=partition)
