"""What S3 refuses and moto lets pass."""

import re

from tests.e2e.cloud.account import Account
from tests.e2e.cloud.wire import Call, Refusal

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def bucket_name_fits(_: Account, call: Call) -> None:
    """moto takes capitals in us-east-1, as S3 did until 2018."""
    if not _BUCKET.fullmatch(call.params["Bucket"]):
        raise Refusal("InvalidBucketName", "The specified bucket is not valid.")
