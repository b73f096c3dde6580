"""One question at a time, with AWS's answers checked against its own service models."""

import contextlib
import functools
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from botocore.stub import Stubber

from workloads.operations.leftovers.aws import Aws
from workloads.operations.leftovers.ownership import Owner
from workloads.operations.preflight.ask import answered
from workloads.operations.preflight.checks import QUICK
from workloads.operations.preflight.questions.asked import Asked
from workloads.operations.preflight.questions.web import Web
from workloads.operations.preflight.subject import Subject
from workloads.planning.plan import plan
from workloads.planning.spec import parse_stack

ACCOUNT = "123456789012"
ARN = f"arn:aws:iam::{ACCOUNT}:user/ada"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
OWN = [{"Key": "topolab:project", "Value": "topolab"}, {"Key": "topolab:stack", "Value": "dev"}]

Answer = Mapping[str, Any] | str
"""A response, or the code of an error."""


def subject(*, topology="g6e8xl-2x1-efa1", **keys):
    """Of a stack file with these platform keys; `run` replaces the usual run."""
    run = keys.pop("run", {"model": "llama-3.2-1b", "recipe": "auto", "steps": 30})
    token = {"hfToken": True} if keys.pop("token", False) else {}
    platform = {"zone": "us-east-1b", **keys}
    stack = parse_stack({"topology": topology, "platform": platform, "run": run, **token}, "Pulumi.dev.yaml")
    return Subject(
        owner=Owner(project="topolab", stack="dev", region="us-east-1"),
        plan=plan(stack, region="us-east-1", experiment="dev", arm=topology),
        profile=None,
        now=NOW,
    )


@functools.cache
def aws() -> Aws:
    """One set of clients for all tests: making them costs more than asking."""
    return Aws(region="us-east-1", profile=None, config=QUICK)


def asked(one: Subject | None = None, *, web: Web | None = None, arn: str | None = ARN, token: str = "") -> Asked:
    return Asked(subject=one or subject(), aws=aws(), arn=arn, web=web or Web(), hf_token=token or None)


@contextlib.contextmanager
def answering(*answers) -> Iterator[None]:
    """AWS as it answers these (service, operation) in this order, and nothing else."""
    stubs: dict[str, Stubber] = {}
    for service, operation, answer in answers:
        stub = stubs.setdefault(service, Stubber(aws().client(service)))
        if isinstance(answer, str):
            status = {"404": 404, "403": 403}.get(answer, 400)
            stub.add_client_error(operation, answer, http_status_code=status)
        else:
            stub.add_response(operation, dict(answer))
    with contextlib.ExitStack() as stack:
        for stub in stubs.values():
            stack.enter_context(stub)
        yield
        for stub in stubs.values():
            stub.assert_no_pending_responses()


def ask(question, answers, one=None):
    """The question's rows, as a preflight would have them."""
    with answering(*answers):
        return answered("the check", lambda: question(asked(one)))


def only(rows):
    (row,) = rows
    return row


def nothing(items):
    """An answer without any."""
    return {items: []}
