"""Names within AWS's length limits for any stack name, and the tags that say whose a resource is.

Limits: IAM role and EventBridge rule 64, IAM policy 128, SQS queue 80, EKS cluster 100, placement group
255, S3 bucket prefix 37 characters (lower case).
"""

import hashlib
import re
from dataclasses import dataclass

_SLUG = 28
"""`topolab-` + slug + `-` is the longest bucket prefix that AWS's provider takes: 37 characters."""


@dataclass(frozen=True, kw_only=True)
class Names:
    """What the stack's resources are called. Two stacks never share a name, whatever was cut off."""

    project: str
    stack: str

    @property
    def base(self) -> str:
        """At most 36 lower case letters, digits and hyphens; the cluster and its queue are called so."""
        return f"{_PREFIX}{_slug(self.stack)}"

    @property
    def bucket_prefix(self) -> str:
        """AWS's provider adds a random end: a bucket that was kept never blocks the next `pulumi up`."""
        return f"{self.base}-"

    def of(self, part: str) -> str:
        """`<base>-<part>`; parts of at most 27 characters fit every limit above."""
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,25}[a-z0-9])?", part), part
        return f"{self.base}-{part}"

    @property
    def tags(self) -> dict[str, str]:
        """Tags of everything that AWS lets us tag; cost allocation and `verify-destroyed` go by them."""
        return {"topolab:project": self.project, "topolab:stack": self.stack}


KEPT = {"topolab:kept": "by-choice"}
"""Tag of what `pulumi destroy` leaves because it holds the user's data, or stands under what does."""

_PREFIX = "topolab-"
_ENDS_AS_WITH_DIGEST = re.compile(r"(^|-)[0-9a-f]{6}$")


def _slug(stack: str) -> str:
    clean = re.sub(r"[^a-z0-9]+", "-", stack.lower()).strip("-")
    if clean == stack and len(clean) <= _SLUG and not _ENDS_AS_WITH_DIGEST.search(clean):
        return clean
    # A changed name takes a digest of the whole one along, so `Dev`, `dev` and `d.ev` stay three. So does one that
    # looks as if it had: a stack that is called `dev-9c24f4` isn't `Dev`.
    digest = hashlib.sha256(stack.encode()).hexdigest()[:6]
    return f"{clean[: _SLUG - 7].rstrip('-')}-{digest}".lstrip("-")
