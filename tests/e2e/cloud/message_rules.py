"""What EventBridge, SQS and S3 refuse and moto lets pass."""

from tests.e2e.cloud.account import Account
from tests.e2e.cloud.wire import Call, Refusal


def rule_has_no_targets(account: Account, call: Call) -> None:
    """Targets go first."""
    rules = account.backend("events").event_buses["default"].rules
    rule = rules.get(call.params["Name"])
    if rule is not None and rule.targets:
        raise Refusal("ValidationException", "Rule can't be deleted since it has targets.")


def bucket_is_empty(account: Account, call: Call) -> None:
    """Every version of every object goes first."""
    bucket = account.backend("s3").buckets.get(call.params["Bucket"])
    if bucket is not None and bucket.keys:
        raise Refusal(
            "BucketNotEmpty", "The bucket you tried to delete is not empty. You must delete all versions in the bucket."
        )
