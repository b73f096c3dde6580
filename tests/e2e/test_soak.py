"""The random walk: every round must end empty. Three rounds in CI, as many as asked for with `make soak`."""

import random

import pytest

from tests.e2e.engine.events import kind_of, name_of
from tests.e2e.faults import Fault
from tests.e2e.walk import STACK, Walk, must_be_empty, rounds, seed

IN_CI = 3


def walk(standing, user, say, count: int) -> None:
    number = seed()
    say(f"soak: {count} rounds, SOAK_SEED={number} repeats them")
    chance = random.Random(number)
    user.init(STACK)
    for index in range(1, count + 1):
        standing.begin()
        one = Walk(standing, user, chance)
        one.told.append(f"seed {number}, round {index}")
        with one.telling():
            one.round()


@pytest.mark.e2e
def test_three_rounds_end_empty(standing, workspace, say):
    walk(standing, workspace, say, IN_CI)


@pytest.mark.soak
def test_all_rounds_end_empty(standing, workspace, say):
    walk(standing, workspace, say, rounds())


@pytest.mark.soak
def test_every_resource_may_fail_once(standing, workspace):
    workspace.init(STACK)
    planned = workspace.preview(STACK).must_succeed().changes.created
    ours = [urn for urn in planned if kind_of(urn).startswith(("aws:", "kubernetes:"))]
    standing.faults(*(refusal("create", urn) for urn in ours), *(refusal("delete", urn) for urn in ours))
    failed: list[str] = []
    for _ in ours:
        # Whoever doesn't wait for a refused one is tried, and refused, in the same run.
        outcome = workspace.up(STACK, "--skip-preview", "--continue-on-error")
        failed += outcome.changes.failed
        if outcome.returncode == 0:
            break
    assert sorted(failed) == sorted(ours)
    for _ in ours:
        if workspace.destroy(STACK, "--skip-preview", "--continue-on-error").returncode == 0:
            break
    must_be_empty(standing, workspace, STACK)


def refusal(verb: str, urn: str) -> Fault:
    return Fault(who="engine", match=f"^{verb} {kind_of(urn)} {name_of(urn)}$", error="once")
