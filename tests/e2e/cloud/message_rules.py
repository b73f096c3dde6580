"""What EventBridge, SQS and S3 refuse and moto lets pass."""

import re

from tests.e2e.cloud.account import Account
from tests.e2e.cloud.wire import Call, Refusal

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def rule_has_no_targets(account: Account, call: Call) -> None:
    """Targets go first."""
    rules = account.backend("events").event_buses["default"].rules
    rule = rules.get(call.params["Name"])
    if rule is not None and rule.targets:
        raise Refusal("ValidationException", "Rule can't be deleted since it has targets.")


def bucket_name_fits(_: Account, call: Call) -> None:
    """moto takes capitals in us-east-1, as S3 did until 2018."""
    if not _BUCKET.fullmatch(call.params["Bucket"]):
        raise Refusal("InvalidBucketName", "The specified bucket is not valid.")


def bucket_is_empty(account: Account, call: Call) -> None:
    """Every version of every object goes first."""
    bucket = account.backend("s3").buckets.get(call.params["Bucket"])
    if bucket is not None and bucket.keys:
        raise Refusal(
            "BucketNotEmpty", "The bucket you tried to delete is not empty. You must delete all versions in the bucket."
        )
