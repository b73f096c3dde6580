"""Waiting with a limit that says what it waits for; the clock comes from outside."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

_LOOK_EVERY_S = 5.0
_REPEAT_EVERY_S = 60.0


@dataclass(kw_only=True)
class Patience:
    """One limit for all that a guard does, counted from its making."""

    limit_s: float
    say: Callable[[str], None]
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.now()

    @property
    def spent_s(self) -> float:
        """Since its making."""
        return self.now() - self._began

    def until_none(self, look: Callable[[], Sequence[str]], what: str) -> list[str]:
        """Look until nothing remains; what remains when the limit is spent.

        Says what remains when that changes, and once a minute.
        """
        said, said_at = list[str](), -_REPEAT_EVERY_S
        while remaining := list(look()):
            if self.spent_s >= self.limit_s:
                return remaining
            if remaining != said or self.spent_s - said_at >= _REPEAT_EVERY_S:
                said, said_at = remaining, self.spent_s
                self.say(f"waiting for {what}: {', '.join(remaining)} ({said_at:.0f} of {self.limit_s:.0f} s)")
            self.sleep(min(_LOOK_EVERY_S, max(0.0, self.limit_s - self.spent_s)))
        return []
