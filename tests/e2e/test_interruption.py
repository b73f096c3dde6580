"""Commands that end before their time: refused, killed; what comes after them finishes the work."""

import random

import pytest

from tests.e2e.engine.events import kind_of, name_of
from tests.e2e.faults import Fault
from tests.e2e.walk import LINES_OF_DESTROY, LINES_OF_UP, STACK, Walk, seed

pytestmark = pytest.mark.e2e


@pytest.fixture
def chance(say) -> random.Random:
    number = seed()
    say(f"interruption: SOAK_SEED={number} repeats it")
    return random.Random(number)


def test_an_up_that_fails_at_any_resource_is_finished_by_the_next_and_a_destroy_likewise(standing, workspace, chance):
    workspace.init(STACK)
    planned = workspace.preview(STACK).must_succeed().changes.created
    made_by_us = [urn for urn in planned if kind_of(urn).startswith(("aws:", "kubernetes:"))]
    refused, kept = chance.sample(made_by_us, 2)

    standing.faults(fault("create", refused))
    failed = workspace.up(STACK, "--skip-preview")
    assert failed.returncode != 0
    assert failed.changes.failed == (refused,)
    assert any(f"create of {name_of(refused)}: no luck" in error for error in failed.errors)
    finished = workspace.up(STACK, "--skip-preview").must_succeed()
    assert refused in finished.changes.created
    assert not set(finished.changes.created) & set(failed.changes.created)

    standing.faults(fault("delete", kept))
    stopped = workspace.destroy(STACK, "--skip-preview")
    Walk(standing, workspace, chance).destroy()
    if stopped.returncode:
        assert stopped.changes.failed == (kept,)


def fault(verb: str, urn: str) -> Fault:
    return Fault(who="engine", match=f"^{verb} {kind_of(urn)} {name_of(urn)}$", error="no luck")


def test_a_killed_up_and_a_killed_destroy_are_finished_after_cancel_and_refresh(standing, workspace, chance):
    workspace.init(STACK)
    walk = Walk(standing, workspace, chance)
    with walk.telling():
        walk.killed(workspace.start_up, chance.randint(5, LINES_OF_UP - 15))
        walk.up()
        walk.killed(workspace.start_destroy, chance.randint(5, LINES_OF_DESTROY - 15))
        walk.destroy()
    assert [one.returncode for one in workspace.outcomes if one.command[0] in {"up", "destroy"}] == [-9, 0, -9, 0]
