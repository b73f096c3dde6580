"""Registries, repositories and the hub, asked for real over HTTP."""

import pytest
import urllib3

from tests.workloads.operations.preflight.shelf import DIGEST, INDEX, shelf
from workloads.operations.preflight.questions.web import Reference, Web, parse_reference, versions_in


@pytest.fixture(scope="module")
def host():
    with shelf() as host:
        yield host


@pytest.mark.parametrize(
    ("text", "host", "repository", "tag"),
    [
        ("public.ecr.aws/a/b:1.0", "public.ecr.aws", "a/b", "1.0"),
        (f"ghcr.io/a/b:1.0@{DIGEST}", "ghcr.io", "a/b", DIGEST),
        (f"127.0.0.1:5000/b@{DIGEST}", "127.0.0.1:5000", "b", DIGEST),
        ("localhost/b", "localhost", "b", "latest"),
        ("ubuntu:24.04", "registry-1.docker.io", "library/ubuntu", "24.04"),
        ("pytorch/pytorch", "registry-1.docker.io", "pytorch/pytorch", "latest"),
    ],
)
def test_a_reference_names_host_repository_and_tag(text, host, repository, tag):
    assert parse_reference(text) == Reference(host=host, repository=repository, tag=tag)


def test_a_registry_elsewhere_is_asked_over_https():
    assert parse_reference("ghcr.io/a/b:1").base == "https://ghcr.io"


def test_a_manifest_is_asked_for_with_the_token_that_the_registry_hands_out(host):
    assert Web().manifest(parse_reference(f"{host}/images/trainer:1.0")) == (200, DIGEST)


def test_an_absent_tag_is_told_from_a_closed_repository(host):
    assert Web().manifest(parse_reference(f"{host}/images/trainer:2.0")) == (404, None)
    assert Web().manifest(parse_reference(f"{host}/closed/trainer:1.0")) == (401, None)


def test_a_charts_versions_are_its_own_not_those_of_its_dependencies_or_neighbours(host):
    assert Web().chart_versions(f"http://{host}/charts", "plugin") == (200, ["0.20.0", "0.19.2"])
    assert versions_in(INDEX, "other") == ["9.9.9"]
    assert versions_in(INDEX, "absent") == []


@pytest.mark.parametrize(("token", "status"), [(None, 401), ("unknown", 403), ("accepted", 200)])
def test_the_hub_is_asked_with_the_token(host, token, status):
    assert Web(hub=f"http://{host}").may_read_model("meta-llama/Llama-3.2-1B", token) == status


def test_nobody_there_is_an_error_of_urllib3_which_a_preflight_shows_as_grey():
    with pytest.raises(urllib3.exceptions.HTTPError):
        Web().manifest(parse_reference("127.0.0.1:1/a/b:1"))
