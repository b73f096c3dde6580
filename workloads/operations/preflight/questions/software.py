"""Versions: EKS's, the node image's, the charts', the image's, and the gated model."""

import re
from collections.abc import Iterator
from typing import Any

from workloads.catalogue.models import find_model
from workloads.catalogue.versions import (
    GPU_AMI_ALIAS,
    KARPENTER,
    KARPENTER_NEWEST_KUBERNETES,
    KUBERNETES,
    Chart,
)
from workloads.operations.leftovers.aws import unless
from workloads.operations.preflight.judgements import software as judge
from workloads.operations.preflight.questions.asked import Asked
from workloads.operations.preflight.questions.web import Web, parse_reference
from workloads.operations.preflight.rows import Row

_ECR = re.compile(r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com")


def kubernetes(asked: Asked) -> Iterator[Row]:
    """EKS's own list of versions."""
    found = asked.aws.pages("eks", "describe_cluster_versions", "clusterVersions", {"includeAll": True})
    offered = {
        one["clusterVersion"]: (
            one["versionStatus"],
            one["endOfStandardSupportDate"].date() if "endOfStandardSupportDate" in one else None,
        )
        for one in found
    }
    yield judge.kubernetes(KUBERNETES, offered, asked.subject.now.date())


def karpenter(_: Asked) -> Iterator[Row]:
    """Karpenter's matrix, as the catalogue has it."""
    yield judge.karpenter(KUBERNETES, KARPENTER.version, KARPENTER_NEWEST_KUBERNETES)


def node_image(asked: Asked) -> Iterator[Row]:
    """What Karpenter will resolve the alias to, by the parameter that it reads."""
    family, _, date = GPU_AMI_ALIAS.partition("@")
    image = f"amazon-eks-node-{family}-x86_64-nvidia-{KUBERNETES}-{date}"
    parameter = f"/aws/service/eks/optimized-ami/{KUBERNETES}/amazon-linux-2023/x86_64/nvidia/{image}/image_id"
    found = None
    with unless("ParameterNotFound"):
        found = asked.aws.client("ssm").get_parameter(Name=parameter)["Parameter"]["Value"]
    yield judge.node_image(GPU_AMI_ALIAS, parameter, found)


def image(asked: Asked) -> Iterator[Row]:
    """The image that the pods will run, by its registry."""
    reference = asked.subject.plan.image.reference
    assert reference is not None, "pods on EC2 have an image"
    status, digest = digest_of(asked, reference)
    yield judge.image(reference, status, digest)


def digest_of(asked: Asked, reference: str) -> tuple[int, str | None]:
    """The registry's answer and the digest; a private repository of ECR is asked with the account's own rights."""
    parsed = parse_reference(reference)
    private = _ECR.fullmatch(parsed.host)
    if private is None or private["region"] != asked.aws.region:
        return asked.web.manifest(parsed)
    wanted = {"imageDigest": parsed.tag} if parsed.tag.startswith("sha256:") else {"imageTag": parsed.tag}
    images: list[Any] = []
    with unless("RepositoryNotFoundException"):
        images = asked.aws.client("ecr").batch_get_image(
            registryId=private["account"], repositoryName=parsed.repository, imageIds=[wanted]
        )["images"]
    return (200, images[0]["imageId"]["imageDigest"]) if images else (404, None)


def charts(asked: Asked) -> Iterator[Row]:
    """Every chart that the program installs."""
    for chart in asked.subject.charts:
        yield chart_row(asked.web, chart)


def chart_row(web: Web, chart: Chart) -> Row:
    """One chart by its registry or its repository's index."""
    if chart.repository is None:
        name = chart.name.removeprefix("oci://")
        status, _ = web.manifest(parse_reference(f"{name}:{chart.version}"))
        return judge.chart(chart.name, chart.version, status, None)
    status, versions = web.chart_versions(chart.repository, chart.name)
    return judge.chart(chart.name, chart.version, status, versions)


def model_token(asked: Asked) -> Iterator[Row]:
    """Where the run reads a gated tokenizer."""
    config = asked.subject.plan.config
    model = find_model(config.model.name)
    if config.data.source == "embedded" or model is None or not model.gated_tokenizer:
        return
    name = model.config.tokenizer
    assert name is not None, "a gated tokenizer has a name"
    status = asked.web.may_read_model(name, asked.hf_token)
    yield judge.model_token(name, status, has_token=asked.hf_token is not None)
