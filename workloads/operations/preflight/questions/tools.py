"""Programs of this computer: their versions, and whose credentials the AWS command line has."""

import json
import subprocess
from collections.abc import Iterator

from workloads.operations.preflight.judgements import tools as judge
from workloads.operations.preflight.questions.asked import Asked
from workloads.operations.preflight.rows import Row, grey

_LIMIT_S = 15


def programs(_: Asked) -> Iterator[Row]:
    """Versions of what `pulumi up` and a person call."""
    yield judge.aws_cli(said("aws", "--version"))
    yield judge.tool("pulumi", said("pulumi", "version"), "3.259.0", "https://www.pulumi.com/docs/install")
    yield judge.tool(
        "kubectl", said("kubectl", "version", "--client"), "1.30", "https://kubernetes.io/docs/tasks/tools"
    )


def credentials(asked: Asked) -> Iterator[Row]:
    """pulumi_eks's kubeconfig asks the AWS command line for each token."""
    if asked.arn is None:
        yield grey("aws credentials", "there is no identity to compare", "log in first")
        return
    profile = ("--profile", asked.subject.profile) if asked.subject.profile else ()
    answer = said("aws", "sts", "get-caller-identity", "--output", "json", *profile)
    yield judge.same_credentials(_arn(answer), asked.arn)


def said(*command: str) -> str | None:
    """What a program printed; None where it isn't there or fails."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    # Version 1 of the AWS command line says its version on stderr.
    return (answer.stdout or answer.stderr) if answer.returncode == 0 else None


def _arn(answer: str | None) -> str | None:
    try:
        return str(json.loads(answer or "")["Arn"])
    except (ValueError, KeyError, TypeError):
        return None
