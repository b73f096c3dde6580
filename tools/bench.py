"""Measure what the project promises of itself, and print it beside the promise: `make bench`.

Each figure is the wall time of the command that a user would give. No test holds these: a machine that others
use would fail them.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = str(ROOT / ".venv" / "bin" / "python")

_TEN_RUNS = """
import sys
from pathlib import Path
from tests.record_factory import noisy, one_pod, two_pods, write_run
for number in range(10):
    make, median = (one_pod, 0.1) if number % 2 else (two_pods, 0.2)
    write_run(make(step_s=noisy(median, steps=1000, spread=0.05, seed=number)), Path(sys.argv[1]), f"run-{number}")
"""


def main() -> int:
    """Print one line a figure; exit 1 where a promise isn't kept."""
    kept = True
    with tempfile.TemporaryDirectory() as scratch:
        for name, measure, limit, unit in _promises(Path(scratch)):
            value = measure()
            kept &= value <= limit
            verdict = "kept" if value <= limit else "NOT KEPT"
            print(f"{name:44} {value:8.3g} {unit:3} promised {limit:g} {unit:3} {verdict}", flush=True)
    return 0 if kept else 1


def _promises(scratch: Path) -> Iterator[tuple[str, Callable[[], float], float, str]]:
    page = scratch / "report.html"
    yield "topo --help", lambda: _best_s(["./topo", "--help"]), 0.3, "s"
    yield "topo predict cpu-2x1-tcp-50mbit", lambda: _best_s(["./topo", "predict", "cpu-2x1-tcp-50mbit"]), 0.3, "s"
    _run([PYTHON, "-c", _TEN_RUNS, str(scratch / "ten")])
    report = ["./topo", "report", str(scratch / "ten"), "--out", str(page)]
    yield "topo report, 10 runs of 1,000 steps", lambda: _seconds(report), 3, "s"
    yield "the page of 10 runs of 1,000 steps", lambda: page.stat().st_size / 1e6, 2, "MB"
    yield "make test", lambda: _seconds(["make", "--silent", "test"]), 60, "s"
    lab = ["./topo", "lab", "--out", str(scratch / "lab")]
    yield "topo lab, the default experiment", lambda: _seconds(lab), 180, "s"
    yield "the trainer's own book-keeping of 100 ms", lambda: _bookkeeping_percent(scratch / "lab"), 1, "%"


def _best_s(command: list[str]) -> float:
    """The quickest of five: the first pays for cold files, the others for neighbours."""
    return min(_seconds(command) for _ in range(5))


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    _run(command)
    return time.perf_counter() - began


def _run(command: list[str]) -> None:
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode:
        print(ended.stdout[-2000:], ended.stderr[-2000:], file=sys.stderr)
        raise SystemExit(f"bench: `{' '.join(command)}` ended with {ended.returncode}")


def _bookkeeping_percent(lab: Path) -> float:
    """What record, counters and parsing take of a step, if that step took 100 ms."""
    records = [json.loads(path.read_text()) for path in lab.rglob("record.json")]
    per_step = [
        rank["clock"]["bookkeeping_s"] / record["summary"]["timed_steps"]
        for record in records
        for rank in record["ranks"]
    ]
    return float(statistics.median(per_step) / 0.1 * 100)


if __name__ == "__main__":
    sys.exit(main())
