import pytest

from workloads.lab.events import (
    Event,
    Finished,
    LinksCounted,
    Noted,
    PodExited,
    PodStarted,
    Refused,
    from_line,
    to_line,
)
from workloads.lab.links import LinkBytes


@pytest.mark.parametrize(
    "event",
    [
        Noted("port 1 is taken"),
        PodStarted("p-0", "10.90.0.1"),
        LinksCounted({"p-0": LinkBytes(sent=1, received=2)}),
        PodExited("p-0", 143, "Error", "", True),
        Refused("two\nlines"),
        Finished(1.5),
    ],
)
def test_an_event_comes_back_from_its_line_as_it_was(event: Event | Refused | Finished) -> None:
    line = to_line(event)
    assert "\n" not in line
    assert from_line(line) == event
