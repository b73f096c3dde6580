"""Whose account this is, and whether the stack may use it: pure."""

from collections.abc import Sequence
from dataclasses import dataclass

SPOT_ROLES = "/aws-service-role/spot.amazonaws.com/"
"""Path of the role by which EC2 buys on spot; an account that never did so lacks it, and Karpenter may not make it."""


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


def check_spot_role(names: Sequence[str]) -> None:
    """ValueError where none of the account's roles under SPOT_ROLES is there: each launch on spot would be refused."""
    if not names:
        raise ValueError(
            "topolab:platform.capacity.mode = spot: this account never bought on spot, and EC2 refuses each launch "
            "without its role for it; make it once: aws iam create-service-linked-role "
            "--aws-service-name spot.amazonaws.com"
        )
