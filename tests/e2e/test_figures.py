"""The figures that CI prints."""

import json

from tests.e2e.engine.running import Outcome
from tests.e2e.figures import Figures


def outcome(verb: str, seconds: float, returncode: int = 0) -> Outcome:
    return Outcome(command=(verb, "--stack", "dev"), returncode=returncode, output="", seconds=seconds, peak_mib=300)


def test_each_part_and_each_command_has_one_line():
    figures = Figures()
    figures.remark("seed 7")
    figures.note("train", 1.0)
    figures.note("train", 30.0)
    figures.note_commands([outcome("up", 21.04), outcome("up", 3.0), outcome("up", 99.0, 1), outcome("config", 0.3)])
    assert figures.lines() == [
        "seed 7",
        "train       31.0 s",
        "up          21.0 s at most, 3.0 s at least, 2 times; 300 MiB",
    ]


def test_two_processes_are_told_as_one_by_the_longer_part_and_every_command():
    one, other = Figures(), Figures()
    for figures, seconds in ((one, 10.0), (other, 12.0)):
        figures.note("start", seconds)
        figures.note_commands([outcome("up", seconds)])
    other.remark("seed 7")
    one.merge(json.loads(json.dumps(other.dump())))
    assert one.lines() == [
        "seed 7",
        "start       12.0 s",
        "up          12.0 s at most, 10.0 s at least, 2 times; 300 MiB",
    ]


def test_nothing_measured_says_nothing():
    assert Figures().lines() == []
