"""Programs of this computer that `pulumi up` calls."""

import re

from workloads.operations.preflight.judgements.software import numbers
from workloads.operations.preflight.rows import Row, green, red

_VERSION = re.compile(r"v?(\d+\.\d+(\.\d+)?)")


def tool(name: str, said: str | None, oldest: str, install: str) -> Row:
    """`said`: what it printed about its version; None: it isn't on PATH."""
    check = f"tool {name}"
    if said is None:
        return red(check, f"{name} isn't on PATH", install)
    found = _VERSION.search(said)
    if found is None:
        return red(check, f"{name} doesn't say its version ({said[:60]!r})", install)
    if numbers(found[1]) < numbers(oldest):
        return red(check, f"{name} is {found[1]}, {oldest} or newer is needed", install)
    return green(check, f"{name} {found[1]}")


def aws_cli(said: str | None) -> Row:
    """pulumi_eks takes the command line from 2.7.0 on, and version 1 from 1.24 on."""
    first_line = (said or "").startswith("aws-cli/1.")
    return tool("aws", said, "1.24.0" if first_line else "2.7.0", "install AWS CLI 2: https://aws.amazon.com/cli")


def same_credentials(command_line: str | None, ours: str) -> Row:
    """The kubeconfig gets its token by the command line, so both must be one identity. ARNs."""
    check = "aws credentials"
    if command_line is None:
        return red(
            check,
            "the AWS command line has no valid credentials, and the cluster's kubeconfig asks it for a token",
            "log in where `aws sts get-caller-identity` sees it (aws:profile of the stack file, or the environment)",
        )
    if _who(command_line) != _who(ours):
        return red(
            check,
            f"the AWS command line is {command_line}, Python is {ours}",
            "give both the same profile or environment",
        )
    return green(check, "the AWS command line is the same identity")


def _who(arn: str) -> str:
    """A role's session names differ from call to call."""
    return arn.rsplit("/", 1)[0] if ":assumed-role/" in arn else arn
