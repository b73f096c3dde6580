"""A random walk of a stack: ups and destroys that are refused, interrupted and killed, until it is empty again."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tests.e2e.engine.running import Outcome, Running, lines_of
from tests.e2e.engine.workspace import Workspace
from tests.e2e.faults import Fault
from tests.e2e.recovery import TAKES_OVER, recover
from tests.e2e.site import ambient
from tests.e2e.standing import HELMS, KEPT, Standing

STACK = "dev"
TOPOLOGIES = ("g6e8xl-2x1-efa1", "g6e8xl-2x1-tcp", "g6e8xl-2x1-tcp-tuned")
"""Of one instance type, compared by this stack's file."""
ROUNDS = 100
_ROUNDS_VARIABLE, _SEED_VARIABLE = "SOAK_ROUNDS", "SOAK_SEED"

LINES_OF_UP, LINES_OF_DESTROY = 100, 95
"""About how many operations a whole one is; a kill after the last is none."""
_SEEDS = 10**6


def rounds() -> int:
    """How many rounds a soak walks: SOAK_ROUNDS."""
    return int(ambient(_ROUNDS_VARIABLE) or ROUNDS)


def seed() -> int:
    """SOAK_SEED, which repeats a walk; else another one each time."""
    given = ambient(_SEED_VARIABLE)
    return random.SystemRandom().randrange(_SEEDS) if given is None else int(given)


def must_be_empty(standing: Standing, user: Workspace, stack: str) -> None:
    """Account, cluster and state after a destroy; a bucket of records is kept, and just one."""
    left = standing.inventory()
    assert set(left) <= KEPT, f"left in the account: {left}"
    assert len(left.get("s3:bucket", [])) <= 1, f"more than the one bucket that is kept: {left}"
    census = set(standing.census()) - HELMS.keys()
    assert census == set(), f"left in the cluster: {sorted(census)}"
    assert user.resources(stack) == []


class Walk:
    """One user, one stack; `told` is what was done so far, for the message of a failure."""

    def __init__(self, standing: Standing, user: Workspace, chance: random.Random, stack: str = STACK) -> None:
        self.told: list[str] = []
        self._standing, self._user, self._chance, self._stack = standing, user, chance, stack
        self._variables: Mapping[str, str] = {}

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Add what was done to an error that comes out of here."""
        try:
            yield
        except Exception as error:
            error.add_note("the walk so far:\n  " + "\n  ".join(self.told))
            raise

    def round(self) -> None:
        """Up by some detours, a change or two, and down again by some detours; all must be gone."""
        detours: list[Callable[[], None]] = [self.refused_up, self.killed_up, self.interrupted_up, self.throttled_up]
        for detour in self._chance.sample(detours, self._chance.randint(0, 2)):
            detour()
        self.up()
        for _ in range(self._chance.randint(0, 2)):
            self.change()
            if self._chance.random() < 0.3:
                self.killed_up()
            self.up()
        detours = [self.refused_destroy, self.killed_destroy, self.interrupted_destroy]
        for detour in self._chance.sample(detours, self._chance.randint(0, 1)):
            detour()
        self.destroy()

    def up(self) -> None:
        """An up that nothing disturbs, which must succeed."""
        self._standing.faults()
        self._tell(self.start_up().finish().must_succeed())
        self._variables = {}

    def start_up(self) -> Running:
        """An up, left running; after a kill it takes over what is in the cluster already."""
        return self._user.start_up(self._stack, "--skip-preview", variables=self._variables)

    def start_destroy(self) -> Running:
        """A destroy, left running."""
        return self._user.start_destroy(self._stack, "--skip-preview")

    def destroy(self) -> None:
        """A destroy that nothing disturbs; nothing but what is kept by choice may be left."""
        self._standing.faults()
        self._tell(self._user.destroy(self._stack, "--skip-preview").must_succeed())
        must_be_empty(self._standing, self._user, self._stack)

    def change(self) -> None:
        """Another attempt, or another topology of the instance type."""
        if self._chance.random() < 0.5:
            self._set("topolab:run.attempt", str(self._chance.randint(2, 99)))
        else:
            self._set("topolab:topology", self._chance.choice(TOPOLOGIES))

    def refused_up(self) -> None:
        """The n-th creation is refused."""
        self._refused("create", self._chance.randint(1, 80), self.start_up)

    def refused_destroy(self) -> None:
        """The n-th deletion is refused."""
        self._refused("delete", self._chance.randint(1, 80), self.start_destroy)

    def throttled_up(self) -> None:
        """AWS answers three calls in a row with Throttling; the SDK tries again."""
        self._plan(Fault(who="aws", match="^Create", nth=self._chance.randint(1, 20), times=3, error="Throttling"))
        self._tell(self.start_up().finish().must_succeed())

    def killed_up(self) -> None:
        """SIGKILL at an operation of an up."""
        self.killed(self.start_up, self._chance.randint(1, LINES_OF_UP))

    def killed_destroy(self) -> None:
        """SIGKILL at an operation of a destroy."""
        self.killed(self.start_destroy, self._chance.randint(1, LINES_OF_DESTROY))

    def interrupted_up(self) -> None:
        """Ctrl-C at an operation of an up."""
        self._interrupted(self.start_up, self._chance.randint(1, LINES_OF_UP))

    def interrupted_destroy(self) -> None:
        """Ctrl-C at an operation of a destroy."""
        self._interrupted(self.start_destroy, self._chance.randint(1, LINES_OF_DESTROY))

    def killed(self, start: Callable[[], Running], lines: int) -> None:
        """SIGKILL after so many operations, and what a user does then; a whole command where it has fewer."""
        running = self._at(start, lines)
        if running.process.poll() is None:
            self._tell(running.kill())
            self.told.extend(recover(self._user, self._standing, self._stack))
            self._variables = TAKES_OVER
        else:
            self._tell(running.finish().must_succeed())

    def _refused(self, verb: str, nth: int, start: Callable[[], Running]) -> None:
        self._plan(Fault(who="engine", match=f"^{verb} ", nth=nth, error="refused by the walk"))
        outcome = start().finish()
        self._tell(outcome)
        # A command that has fewer of these operations meets no refusal.
        refused = self._standing.faults_met() > 0
        assert (outcome.returncode != 0) == refused, outcome.tail()
        assert any("refused by the walk" in error for error in outcome.errors) == refused, outcome.tail()

    def _interrupted(self, start: Callable[[], Running], lines: int) -> None:
        running = self._at(start, lines)
        if running.process.poll() is None:
            running.interrupt()
        self._tell(running.finish())

    def _at(self, start: Callable[[], Running], lines: int) -> Running:
        """A command that has come so far, or to its end."""
        self._standing.faults()
        log = self._standing.site.operations
        running = start()
        # Its own line, in which the driver says what it starts, is there already.
        running.at_line(log, lines_of(log) + lines)
        self.told.append(f"{running.command[0]}: {lines} operations, then")
        return running

    def _plan(self, fault: Fault) -> None:
        self._standing.faults(fault)
        self.told.append(f"{fault.who} {fault.match} number {fault.nth}: {fault.error}")

    def _set(self, key: str, value: str) -> None:
        self._user.set(self._stack, key, value)
        self.told.append(f"{key} = {value}")

    def _tell(self, outcome: Outcome) -> None:
        self.told.append(f"{outcome.command[0]} ended with {outcome.returncode}: {outcome.changes.summary()}")
