"""What the program reads of a stack, and what it never says again."""

import pytest

from tests.pulumi_engine import TOKEN, StackFile, read_stack, run
from workloads.planning.spec import SpecError


def test_a_token_that_is_no_secret_is_refused_with_the_way_to_set_it_as_one():
    with pytest.raises(Exception, match="pulumi config set --secret topolab:hfToken") as error:
        run(read_stack("dev").with_values(hfToken=TOKEN))
    assert TOKEN not in str(error.value)


def test_a_secret_under_a_misspelt_key_is_not_shown():
    # The engine opens secrets before the program sees them.
    dev = read_stack("dev")
    odd = StackFile(stack="dev", config={**dev.config, "topolab:hfTokn": {"secure": "v1:x"}})
    with pytest.raises(Exception, match="did you mean hfToken") as error:
        run(odd)
    assert "(not shown)" in str(error.value)
    assert TOKEN not in str(error.value)
    assert not isinstance(error.value, SpecError), "a user sees a sentence, not a traceback"
