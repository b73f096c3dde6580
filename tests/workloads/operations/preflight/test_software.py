"""Versions of EKS, of the node image, of charts and image, and the gated model."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.workloads.operations.preflight.asking import answering, ask, asked, only, subject
from tests.workloads.operations.preflight.shelf import DIGEST, shelf
from workloads.catalogue.versions import GPU_AMI_ALIAS, KUBERNETES, STOCK_IMAGE, Chart
from workloads.operations.preflight.ask import answered
from workloads.operations.preflight.judgements import software as judge
from workloads.operations.preflight.questions import software
from workloads.operations.preflight.questions.web import Web


@pytest.fixture(scope="module")
def host():
    with shelf() as host:
        yield host


def versions(version, status, ends=None):
    one = {"clusterVersion": version, "versionStatus": status}
    ending = {} if ends is None else {"endOfStandardSupportDate": ends}
    return [("eks", "describe_cluster_versions", {"clusterVersions": [{**one, **ending}]})]


def test_a_kubernetes_in_standard_support_is_green():
    row = only(ask(software.kubernetes, versions(KUBERNETES, "STANDARD_SUPPORT", datetime(2027, 3, 1, tzinfo=UTC))))
    assert (row.colour, row.sentence) == ("green", f"EKS supports {KUBERNETES} until 2027-03-01")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (versions("1.39", "STANDARD_SUPPORT"), "EKS doesn't offer 1.35 any more (newest: 1.39)"),
        (versions(KUBERNETES, "UNSUPPORTED"), "EKS doesn't offer 1.35 any more (newest: 1.35)"),
        (versions(KUBERNETES, "EXTENDED_SUPPORT"), "1.35 is in extended support"),
        (versions(KUBERNETES, "STANDARD_SUPPORT", datetime(2026, 11, 20, tzinfo=UTC)), "1.35 is in extended support"),
    ],
)
def test_a_kubernetes_that_eks_drops_or_charges_for_is_red(answers, said):
    row = only(ask(software.kubernetes, answers))
    assert (row.colour, row.sentence.startswith(said)) == ("red", True)


def test_versions_that_may_not_be_read_are_grey():
    denied = [("eks", "describe_cluster_versions", "AccessDeniedException")]
    assert only(ask(software.kubernetes, denied)).colour == "grey"


def test_karpenter_knows_the_kubernetes_of_the_catalogue_and_no_newer_one():
    assert only(ask(software.karpenter, [])).colour == "green"
    assert judge.karpenter("1.37", "1.14.1", "1.36").colour == "red"
    assert judge.karpenter("1.9", "1.14.1", "1.36").colour == "green"


def test_the_node_image_is_the_one_that_karpenter_will_read():
    row = only(ask(software.node_image, [("ssm", "get_parameter", {"Parameter": {"Value": "ami-1"}})]))
    assert (row.colour, row.sentence) == ("green", f"{GPU_AMI_ALIAS} is ami-1")
    gone = only(ask(software.node_image, [("ssm", "get_parameter", "ParameterNotFound")]))
    assert gone.colour == "red"
    date = GPU_AMI_ALIAS.partition("@")[2]
    assert f"nvidia/amazon-eks-node-al2023-x86_64-nvidia-{KUBERNETES}-{date}/image_id" in gone.sentence
    assert only(ask(software.node_image, [("ssm", "get_parameter", "AccessDeniedException")])).colour == "grey"


def image_row(reference, **more):
    one = subject(image={"base": reference})
    return only(answered("image", lambda: software.image(asked(one, **more))))


def test_an_image_is_green_with_its_digest(host):
    row = image_row(f"{host}/images/trainer:1.0")
    assert (row.colour, row.sentence) == (
        "green",
        f"{host}/images/trainer:1.0 is {DIGEST}; `--pin` writes it into the stack file",
    )


def test_an_absent_image_is_red_a_closed_or_unreachable_one_grey(host):
    assert image_row(f"{host}/images/trainer:2.0").colour == "red"
    assert "may not be read without a login" in image_row(f"{host}/closed/trainer:1.0").sentence
    row = image_row("127.0.0.1:1/a/b:1")
    assert (row.colour, row.sentence) == ("grey", "there is no way to it from here (MaxRetryError)")


PRIVATE = f"123456789012.dkr.ecr.us-east-1.amazonaws.com/trainer@{DIGEST}"


def test_a_private_image_of_ecr_is_asked_with_the_accounts_own_rights():
    found = {"images": [{"imageId": {"imageDigest": DIGEST}}]}
    with answering(("ecr", "batch_get_image", found)):
        assert image_row(PRIVATE).colour == "green"
    with answering(("ecr", "batch_get_image", {"images": []})):
        assert image_row(PRIVATE.partition("@")[0] + ":1").colour == "red"
    with answering(("ecr", "batch_get_image", "RepositoryNotFoundException")):
        assert image_row(PRIVATE).colour == "red"
    with answering(("ecr", "batch_get_image", "AccessDeniedException")):
        assert image_row(PRIVATE).colour == "grey"


def test_the_stock_image_is_what_a_stack_without_one_runs():
    assert subject().plan.image.reference == STOCK_IMAGE


def chart_rows(*charts):
    one = replace(subject(), charts=charts)
    return answered("charts", lambda: software.charts(asked(one)))


def test_charts_are_looked_up_in_registries_and_in_indexes(host):
    oci = Chart(name=f"oci://{host}/images/trainer", version="1.0", repository=None)
    indexed = Chart(name="plugin", version="0.20.0", repository=f"http://{host}/charts")
    assert [row.colour for row in chart_rows(oci, indexed)] == ["green", "green"]


def test_a_chart_that_was_withdrawn_is_red_and_the_newest_is_named(host):
    oci = Chart(name=f"oci://{host}/images/trainer", version="0.1", repository=None)
    indexed = Chart(name="plugin", version="0.1.0", repository=f"http://{host}/charts")
    rows = chart_rows(oci, indexed)
    assert [row.colour for row in rows] == ["red", "red"]
    assert rows[1].sentence == "0.1.0 isn't published any more (newest: 0.20.0)"


def test_a_chart_behind_a_login_or_a_dead_host_is_grey(host):
    closed = Chart(name=f"oci://{host}/closed/trainer", version="1.0", repository=None)
    assert only(chart_rows(closed)).colour == "grey"
    dead = Chart(name="oci://127.0.0.1:1/a", version="1.0", repository=None)
    assert only(chart_rows(dead)).colour == "grey"
    assert judge.chart("x", "1.0", 503, []).colour == "grey"


GATED = {"run": {"model": "llama-3.2-1b", "steps": 30, "data": {"source": "hf:a/b"}}, "token": True}


@pytest.mark.parametrize(
    ("token", "colour", "said"),
    [
        ("accepted", "green", "it reads meta-llama/Llama-3.2-1B"),
        ("refused", "red", "the token's account may not read meta-llama/Llama-3.2-1B"),
        ("", "red", "meta-llama/Llama-3.2-1B is gated and there is no token"),
    ],
)
def test_a_gated_model_wants_a_token_that_reads_it(host, token, colour, said):
    asking = asked(subject(**GATED), web=Web(hub=f"http://{host}"), token=token)
    row = only(list(software.model_token(asking)))
    assert (row.colour, row.sentence) == (colour, said)


def test_a_model_that_isnt_there_is_red_and_a_hub_in_trouble_grey():
    assert judge.model_token("a/b", 404, has_token=True).colour == "red"
    assert judge.model_token("a/b", 401, has_token=True).sentence == "a/b is gated and the token isn't known"
    assert judge.model_token("a/b", 500, has_token=True).colour == "grey"


def test_the_embedded_text_asks_for_no_model():
    assert list(software.model_token(asked())) == []
