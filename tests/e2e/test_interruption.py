"""Commands that end before their time: refused, killed; what comes after them finishes the work."""

import random
from collections.abc import Iterator

import pytest

from tests.e2e.engine.events import kind_of, name_of
from tests.e2e.engine.workspace import Workspace
from tests.e2e.faults import Fault
from tests.e2e.walk import LINES_OF_DESTROY, LINES_OF_UP, STACK, Walk, seed

pytestmark = pytest.mark.e2e

_OURS = ("aws:", "kubernetes:")


@pytest.fixture
def chance(say) -> random.Random:
    number = seed()
    say(f"interruption: SOAK_SEED={number} repeats it")
    return random.Random(number)


def test_an_up_that_fails_at_any_resource_is_finished_by_the_next_and_a_destroy_likewise(standing, workspace, chance):
    workspace.init(STACK)
    planned = workspace.preview(STACK).must_succeed().changes.created
    refused = chance.choice([urn for urn in planned if kind_of(urn).startswith(_OURS)])

    standing.faults(fault("create", refused))
    failed = workspace.up(STACK, "--skip-preview")
    assert failed.returncode != 0
    assert failed.changes.failed == (refused,)
    assert any(f"create of {name_of(refused)}: no luck" in error for error in failed.errors)
    finished = workspace.up(STACK, "--skip-preview").must_succeed()
    assert refused in finished.changes.created
    assert not set(finished.changes.created) & set(failed.changes.created)

    held = chance.choice(list(deleted_by_a_destroy(workspace)))
    standing.faults(fault("delete", held))
    stopped = workspace.destroy(STACK, "--skip-preview")
    assert stopped.returncode != 0
    assert stopped.changes.failed == (held,)
    Walk(standing, workspace, chance).destroy()


def deleted_by_a_destroy(workspace: Workspace) -> Iterator[str]:
    """What a provider is asked to delete: what is retained is forgotten, and so is what goes with another one."""
    for one in workspace.resources(STACK):
        if kind_of(one["urn"]).startswith(_OURS) and not one.get("retainOnDelete") and not one.get("deletedWith"):
            yield one["urn"]


def fault(verb: str, urn: str) -> Fault:
    return Fault(who="engine", match=f"^{verb} {kind_of(urn)} {name_of(urn)}$", error="no luck")


def test_a_killed_up_and_a_killed_destroy_are_finished_after_cancel_and_refresh(standing, workspace, chance):
    workspace.init(STACK)
    walk = Walk(standing, workspace, chance)
    with walk.telling():
        walk.killed(walk.start_up, chance.randint(5, LINES_OF_UP - 15))
        walk.up()
        walk.killed(walk.start_destroy, chance.randint(5, LINES_OF_DESTROY - 15))
        walk.destroy()
    assert [one.returncode for one in workspace.outcomes if one.command[0] in {"up", "destroy"}] == [-9, 0, -9, 0]
