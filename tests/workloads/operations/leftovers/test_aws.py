"""Retries, whose credentials they are, and errors as sentences."""

import contextlib
import socket
import threading
import time

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import EndpointConnectionError

from tests.workloads.operations.leftovers import scene
from tests.workloads.operations.leftovers.scene import ACCOUNT, KARPENTER, aws
from workloads.operations.leftovers.aws import AT_ONCE, AT_ONCE_S, Aws, RefusedError, sentences, tags_of

THROTTLED = (
    b"<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>slow</Message></Error></Errors></Response>"
)


class Raw:
    """A body as urllib3 hands it over."""

    def stream(self, **_):
        yield THROTTLED


@pytest.fixture
def throttle(monkeypatch):
    """EC2 throttles the next calls of an operation; the seconds that the client slept."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    registered = []

    def throttle(operation: str, times: int) -> list[float]:
        left = [times]

        def answer(request, **_):
            if left[0] == 0:
                return None
            left[0] -= 1
            return AWSResponse(request.url, 503, HTTPHeaders(), Raw())

        events = aws().client("ec2").meta.events
        events.register_first(f"before-send.ec2.{operation}", answer)
        registered.append((events, operation, answer))
        return slept

    yield throttle
    for events, operation, answer in registered:
        events.unregister(f"before-send.ec2.{operation}", answer)


def test_throttling_is_waited_out_longer_each_time(throttle):
    node = scene.instance(scene.subnet(scene.vpc()), KARPENTER)
    slept = throttle("DescribeInstances", 5)
    found = list(aws().pages("ec2", "describe_instances", "Reservations.Instances"))
    assert [one["InstanceId"] for one in found] == [node]
    assert len(slept) == 5
    assert sum(slept) <= 5 * 20, "no wait is longer than botocore's 20 s"


def test_throttling_without_end_is_a_sentence(throttle):
    throttle("DescribeVpcs", 100)
    with (
        pytest.raises(RefusedError, match=r"VPCs: AWS answers DescribeVpcs with RequestLimitExceeded \(slow\)"),
        sentences("VPCs"),
    ):
        list(aws().pages("ec2", "describe_vpcs", "Vpcs"))


def test_the_account_is_asked_for_and_held_to():
    assert aws().account() == ACCOUNT
    aws().must_be(ACCOUNT)
    with pytest.raises(RefusedError, match=f"of account {ACCOUNT}, and the stack stands in 999999999999: nothing was"):
        aws().must_be("999999999999")


def test_a_person_who_waits_is_told_within_seconds_that_aws_is_away(monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    asked: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as closing:
        threading.Thread(target=hang_up, args=(closing, asked), daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{closing.getsockname()[1]}")
        away = Aws(region="us-east-1", profile=None, config=AT_ONCE)
        with pytest.raises(RefusedError, match="whose credentials these are: AWS can't be asked"):
            away.account()
    assert len(asked) == 2
    assert 2 * AT_ONCE_S + sum(slept) < 8


def hang_up(server: socket.socket, asked: list[int]) -> None:
    """Take each call and end it; the socket's end ends this."""
    with contextlib.suppress(OSError):
        while True:
            server.accept()[0].close()
            asked.append(1)


def test_a_profile_that_is_not_there_is_a_sentence():
    with pytest.raises(RefusedError, match=r"credentials: AWS can't be asked \(The config profile \(lab\) could not"):
        Aws(region="us-east-1", profile="lab")


def test_a_network_that_is_away_is_a_sentence():
    with pytest.raises(RefusedError, match=r"whose: AWS can't be asked .*Could not connect"), sentences("whose"):
        raise EndpointConnectionError(endpoint_url="https://ec2")


def test_commands_name_the_region_and_the_profile_if_there_is_one():
    assert aws().options() == "--region us-east-1"
    other = Aws.__new__(Aws)
    other.region, other.profile = "us-west-2", "lab"
    assert other.options() == "--region us-west-2 --profile lab"


def test_an_answer_without_pages_is_read_whole():
    aws().client("ec2").allocate_address(Domain="vpc")
    assert len(list(aws().pages("ec2", "describe_addresses", "Addresses"))) == 1


def test_tags_are_read_as_each_service_spells_them():
    assert tags_of({"Tags": [{"Key": "a", "Value": "b"}]}) == {"a": "b"}
    assert tags_of({"TagSet": [{"Key": "a", "Value": "b"}]}) == {"a": "b"}
    assert tags_of({"tags": {"a": "b"}}) == {"a": "b"}
    assert tags_of({}) == {}
