"""Names that AWS takes, whatever a stack is called."""

import re
import string

from hypothesis import given
from hypothesis import strategies as st

from workloads.planning.naming import Names

# What Pulumi lets a stack be called.
STACKS = st.text(alphabet=string.ascii_letters + string.digits + "-_.", min_size=1, max_size=100)


def names(stack: str) -> Names:
    return Names(project="topolab", stack=stack)


@given(STACKS)
def test_a_base_is_a_name_for_a_cluster_a_queue_and_a_bucket(stack):
    base = names(stack).base
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", base)
    assert len(base) <= 36
    assert len(names(stack).bucket_prefix) <= 37


@given(STACKS)
def test_the_longest_part_still_fits_a_role(stack):
    assert len(names(stack).of("a" * 27)) <= 64


@given(STACKS, STACKS)
def test_two_stacks_share_no_name(one, other):
    assert (names(one).base == names(other).base) == (one == other)


@given(STACKS)
def test_no_stack_gets_the_name_of_another_by_being_called_what_that_one_is_named(stack):
    literal = names(stack).base.removeprefix("topolab-")
    assert (names(literal).base == names(stack).base) == (literal == stack)


def test_a_stack_called_what_another_is_named_takes_a_digest_of_its_own():
    assert names("Dev").base == "topolab-dev-9c24f4"
    assert re.fullmatch(r"topolab-dev-9c24f4-[0-9a-f]{6}", names("dev-9c24f4").base)


def test_a_name_that_fits_is_kept_as_it_is():
    assert names("g6e12xl-4x4-tcp-hostnet").base == "topolab-g6e12xl-4x4-tcp-hostnet"


def test_a_cut_name_keeps_its_beginning_and_takes_a_digest_along():
    assert re.fullmatch(r"topolab-a-very-long-name-of-s-[0-9a-f]{6}", names("a-very-long-name-of-some-stack").base)


def test_case_and_dots_do_not_make_two_stacks_one():
    assert len({names(s).base for s in ("dev", "Dev", "d.ev", "d-ev")}) == 4


def test_tags_say_project_and_stack():
    assert names("dev").tags == {"topolab:project": "topolab", "topolab:stack": "dev"}
