"""The list of checks, and how a whole preflight runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from workloads.operations.leftovers.aws import Aws
from workloads.operations.preflight.ask import ask_all, of_refusal, of_silence, without
from workloads.operations.preflight.questions import account, capacity, money, network, software, tools
from workloads.operations.preflight.questions.asked import Asked
from workloads.operations.preflight.questions.web import Web
from workloads.operations.preflight.rows import Row
from workloads.operations.preflight.subject import Subject

LIMIT_S = 18.0
"""A preflight takes at most 20 s, start and table included."""

QUICK = Config(
    # Adaptive: all threads share one rate, which falls when AWS throttles.
    retries={"mode": "adaptive", "total_max_attempts": 5},
    connect_timeout=3,
    read_timeout=8,
    max_pool_connections=32,
)

Question = Callable[[Asked], Iterator[Row]]

OF_AWS: Mapping[str, Question] = {
    "region": account.region,
    "zone": account.zone,
    "stack's name": account.name,
    "instance type": capacity.instance_type,
    "quota of GPU vCPUs": capacity.gpu_quota,
    "quota of system vCPUs": capacity.system_quota,
    "spot role": capacity.spot_role,
    "reservation": capacity.reservation,
    "price": money.price,
    "spot price": money.spot_price,
    "VPCs": network.vpcs,
    "Elastic IPs": network.elastic_ips,
    "addresses": network.addresses,
    "file system": network.file_system,
    "records bucket": account.records,
    "Kubernetes": software.kubernetes,
    "GPU node image": software.node_image,
}
"""Questions that need credentials, by their row."""

OF_OTHERS: Mapping[str, Question] = {
    "Karpenter": software.karpenter,
    "image": software.image,
    "charts": software.charts,
    "model token": software.model_token,
    "tools": tools.programs,
    "aws credentials": tools.credentials,
}
"""Questions of registries and of this computer."""

SERVICES = ("ec2", "ecr", "eks", "fsx", "iam", "pricing", "s3", "service-quotas", "ssm")


def preflight(subject: Subject, aws: Aws, web: Web, hf_token: str | None, *, limit_s: float = LIMIT_S) -> list[Row]:
    """Every row, in a fixed order. Nothing is made or changed."""
    arn, first = _identity(subject, aws)
    asked = Asked(subject=subject, aws=aws, arn=arn, web=web, hf_token=hf_token)
    wanted = {**(OF_AWS if arn else {}), **OF_OTHERS}
    unasked = [] if arn else without(list(OF_AWS), "not asked: nobody knows whose account it is")
    if arn:
        # Clients are made one after another: botocore's loader isn't made for threads.
        for service in SERVICES:
            aws.client(service)
    rows = ask_all({name: partial(question, asked) for name, question in wanted.items()}, limit_s=limit_s)
    return [first, *unasked, *rows]


def _identity(subject: Subject, aws: Aws) -> tuple[str | None, Row]:
    """First and alone: what is asked with dead credentials only repeats itself."""
    try:
        return account.identity(aws, subject)
    except ClientError as error:
        row = of_refusal("identity", error)
    except BotoCoreError as error:
        row = of_silence("identity", error)
    return None, row


def is_ready(rows: Sequence[Row]) -> bool:
    """Nothing is known to fail."""
    return all(row.colour != "red" for row in rows)
