"""What a check may ask: an account, registries, and the subject itself."""

from dataclasses import dataclass

from workloads.operations.leftovers.aws import Aws
from workloads.operations.preflight.questions.web import Web
from workloads.operations.preflight.subject import Subject


@dataclass(frozen=True, kw_only=True)
class Asked:
    """`aws`: of the stack's region. `arn`: whose credentials these are; None where nobody could tell."""

    subject: Subject
    aws: Aws
    arn: str | None
    web: Web
    hf_token: str | None
    """Of the stack; None where it has none, or where it couldn't be opened."""
