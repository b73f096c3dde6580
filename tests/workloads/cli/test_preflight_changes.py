"""`topo preflight --reserve` and `--pin`: what they ask, make and write."""

import json

import pytest
from click.testing import CliRunner

from tests.workloads.operations.preflight import asking
from tests.workloads.operations.preflight.asking import answering
from tests.workloads.operations.preflight.shelf import DIGEST, shelf
from workloads.cli import preflight
from workloads.operations.preflight.rows import green, red

STACK = """\
# The cheapest.
config:
  aws:region: us-east-1
  topolab:topology: g6e8xl-2x1-efa1
  topolab:platform:
    zone: us-east-1b  # has the type
    ttlMinutes: 120
    image: {base: IMAGE}
  topolab:run: {model: llama-3.2-1b, recipe: auto, steps: 30}
"""
ID = "cr-0123456789abcdef0"


@pytest.fixture(scope="module")
def host():
    with shelf() as host:
        yield host


@pytest.fixture(autouse=True)
def stack(tmp_path, monkeypatch, host):
    for name, value in (("AWS_ACCESS_KEY_ID", "nobody"), ("AWS_SECRET_ACCESS_KEY", "nobody")):
        monkeypatch.setenv(name, value)
    (tmp_path / "Pulumi.yaml").write_text("name: topolab\nruntime: python\n")
    path = tmp_path / "Pulumi.dev.yaml"
    path.write_text(STACK.replace("IMAGE", f"{host}/images/trainer:1.0"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(preflight, "Aws", lambda **_: asking.aws())
    return path


@pytest.fixture(autouse=True)
def rows(monkeypatch):
    found = [green("region", "us-east-1 is enabled")]
    monkeypatch.setattr(preflight, "preflight", lambda *_, **__: found)
    return found


def call(*arguments, answer=""):
    return CliRunner().invoke(preflight.command, ["dev", *arguments], input=answer, standalone_mode=False)


def price(usd):
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": str(usd)}}
    return json.dumps({"terms": {"OnDemand": {"a": {"priceDimensions": {"b": dimension}}}}})


def account(*made, cluster="ResourceNotFoundException", listed=None):
    offers = [{"InstanceType": "g6e.8xlarge", "Location": f"us-east-1{one}"} for one in "bc"]
    return answering(
        ("ec2", "describe_instance_type_offerings", {"InstanceTypeOfferings": offers}),
        ("eks", "describe_cluster", cluster),
        ("pricing", "get_products", listed or {"PriceList": [price(5.0)]}),
        *(("ec2", "create_capacity_reservation", one) for one in made),
    )


MADE = {"CapacityReservation": {"CapacityReservationId": ID}}


def test_yes_reserves_and_writes_id_and_zone_and_nothing_else(stack):
    before = stack.read_text()
    with account("InsufficientInstanceCapacity", MADE):
        outcome = call("--reserve", answer="y\n")
    assert outcome.exception is None
    assert "10.00 USD an hour from the moment that it is made, used or not: at most 30.00 USD" in outcome.stderr
    assert "no capacity in us-east-1b" in outcome.stderr
    assert f"aws ec2 cancel-capacity-reservation --capacity-reservation-id {ID} --region us-east-1" in outcome.stderr
    added = f"    capacity: {{mode: reservation, id: {ID}}}\n"
    assert stack.read_text() == before.replace("    zone: us-east-1b", f"{added}    zone: us-east-1c")


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_anything_but_yes_makes_nothing(stack, answer):
    before = stack.read_text()
    with account():
        outcome = call("--reserve", answer=answer)
    assert type(outcome.exception).__name__ == "Abort"
    assert stack.read_text() == before


def test_where_the_price_may_not_be_read_the_dated_one_is_said():
    with account(listed="AccessDeniedException"):
        outcome = call("--reserve", answer="n\n")
    assert "9.06 USD an hour" in outcome.stderr


def test_a_stack_that_stands_already_stays_in_its_zone():
    with account(cluster={"cluster": {"name": "topolab-dev"}}):
        outcome = call("--reserve", answer="n\n")
    assert "to reserve: 2 x g6e.8xlarge in us-east-1b\n" in outcome.stderr


def test_what_would_fail_anyway_is_mended_before_money_is_spent(rows):
    rows += [red("quota of GPU vCPUs", "0 free", "ask"), red("zone", "no type", "move")]
    outcome = call("--reserve", answer="y\n")
    assert str(outcome.exception).startswith("--reserve: quota of GPU vCPUs would fail on reserved nodes too")


def test_a_file_that_cant_be_changed_keeps_the_reservation_from_being_made(stack):
    stack.write_text(
        f"config: {json.dumps({'aws:region': 'us-east-1', 'topolab:topology': 'g6e8xl-2x1-efa1'})[:-1]}, "
        "topolab:platform: {zone: us-east-1b}, topolab:run: {model: llama-3.2-1b, steps: 30}}\n"
    )
    with account():
        outcome = call("--reserve", answer="y\n")
    assert "by hand" in str(outcome.exception)


def test_a_pinned_image_is_its_tag_and_digest_and_still_whole(stack, host):
    outcome = call("--pin")
    assert outcome.exception is None
    assert f"image: {{base: '{host}/images/trainer:1.0@{DIGEST}'}}" in stack.read_text()
    assert "wrote platform.image" in outcome.stderr
    assert "is pinned already" in call("--pin").stderr


def test_an_image_without_a_digest_cant_be_pinned(stack, host):
    stack.write_text(stack.read_text().replace("trainer:1.0", "trainer:2.0"))
    assert "its registry names no digest" in str(call("--pin").exception)
    stack.write_text(stack.read_text().replace(host, "127.0.0.1:1"))
    assert "its registry can't be asked" in str(call("--pin").exception)


@pytest.mark.parametrize("option", ["--pin", "--reserve"])
def test_without_a_stack_there_is_nothing_to_write_into(topo, option):
    called = topo("preflight", option)
    assert (called.code, "name the STACK" in called.err) == (2, True)
