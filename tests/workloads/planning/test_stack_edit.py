"""A stack file is changed where it must, and stays its author's everywhere else."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.source import ROOT
from workloads.planning.stack_edit import with_platform

RESERVED = {"mode": "reservation", "id": "cr-0123456789abcdef0"}
BLOCK = """\
# The cheapest.
config:
  aws:region: us-east-1  # cheap
  topolab:platform:
    # Where it stands.
    zone: us-east-1b  # has the type
    capacity: {mode: spot}  # for a while
    budgetUsd: 5
  # What it does.
  topolab:run: {model: tiny}
"""


def changed(text, **values):
    return with_platform(text, values, "Pulumi.dev.yaml")


def test_a_value_is_replaced_and_comments_and_order_stay():
    text = changed(BLOCK, capacity=RESERVED, zone="us-east-1c")
    assert text == BLOCK.replace("{mode: spot}", "{mode: reservation, id: cr-0123456789abcdef0}").replace(
        "us-east-1b", "us-east-1c"
    )


def test_a_new_key_is_added_to_a_block_and_to_a_flow_mapping():
    assert "    image: {base: x}\n    zone: us-east-1b  # has" in changed(BLOCK, image={"base": "x"})
    flow = "config:\n  topolab:platform: {zone: us-east-1b}  # short\n"
    assert changed(flow, image="stock") == "config:\n  topolab:platform: {zone: us-east-1b, image: stock}  # short\n"


def test_a_block_value_becomes_one_line_and_what_follows_stays():
    text = BLOCK.replace("    capacity: {mode: spot}  # for a while\n", "    capacity:\n      mode: spot\n")
    assert "    capacity: {mode: reservation, id: cr-0123456789abcdef0}\n    budgetUsd: 5\n" in changed(
        text, capacity=RESERVED
    )


def test_a_file_without_a_platform_gets_one():
    text = "config:\n  topolab:topology: x\n  # the end\n"
    assert changed(text, zone="us-east-1b") == (
        "config:\n  topolab:topology: x\n  topolab:platform: {zone: us-east-1b}\n  # the end\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "config: {topolab:platform: {zone: a}}\n",
        "config:\n  topolab:platform: {}\n",
        "config:\n  topolab:platform:\n",
        "config:\n  topolab:platform:\n    zone: a\n    zone: c\n",
    ],
)
def test_a_layout_that_cant_be_changed_is_left_to_its_author(text):
    with pytest.raises(ValueError, match=r"Pulumi.dev.yaml: its layout .* write platform.zone: b by hand"):
        changed(text, zone="b")


@pytest.mark.parametrize("path", sorted(ROOT.glob("Pulumi.*.yaml")), ids=lambda path: path.name)
def test_every_stack_file_can_be_changed(path):
    text = path.read_text()
    after = changed(text, capacity=RESERVED, zone="us-east-1f")
    comments = [line for line in text.splitlines() if "#" in line]
    assert [line for line in after.splitlines() if "#" in line] == comments
    assert yaml.safe_load(after)["config"]["topolab:platform"]["capacity"] == RESERVED


WORDS = st.dictionaries(
    st.sampled_from(["zone", "image", "records", "capacity"]),
    st.one_of(st.text(max_size=12), st.dictionaries(st.sampled_from(["mode", "id"]), st.text(max_size=8), min_size=1)),
    min_size=1,
)


@given(before=WORDS, after=WORDS, flow=st.booleans())
def test_whatever_stood_there_the_new_values_stand_there_now(before, after, flow):
    text = yaml.safe_dump({"config": {"topolab:platform": before, "z": 1}}, default_flow_style=None if flow else False)
    now = yaml.safe_load(with_platform(text, after, "x"))
    assert now == {"config": {"topolab:platform": {**before, **after}, "z": 1}}
