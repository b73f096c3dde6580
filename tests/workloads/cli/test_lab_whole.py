"""`topo lab`, whole: real training over a dialled link, and the page that says what the link cost."""

from pathlib import Path

import pytest

from trainer.record import RunRecord
from workloads.cli.main import topo
from workloads.comparison.probe_report import build_probe_report
from workloads.comparison.records import read_runs
from workloads.comparison.verification import verify

pytestmark = pytest.mark.torch

RATE_BITS_PER_S = 50e6
EXPERIMENT = """
name: slow-or-not
vary: topology
base:
  topology: cpu-1x2-local
  run: {model: tiny, globalBatchTokens: 1024, sequenceLength: 128, steps: 16, warmupSteps: 4}
arms:
  - {name: one-pod}
  - {name: slow, patch: {topology: cpu-2x1-tcp-50mbit}}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lab's folder of that experiment, run once for the tests of this module."""
    folder = tmp_path_factory.mktemp("lab")
    file = folder / "slow-or-not.yaml"
    file.write_text(EXPERIMENT)
    code = topo.main(["lab", str(file), "--out", str(folder / "out")], standalone_mode=False)
    assert code == 0
    return folder / "out" / "slow-or-not"


def test_a_probe_only_experiment_tells_the_dialled_rates_apart(tmp_path: Path) -> None:
    assert topo.main(["lab", "probe-cpu", "--out", str(tmp_path)], standalone_mode=False) == 0
    folder = tmp_path / "probe-cpu"
    figures = {f.name: f for f in build_probe_report(read_runs([str(folder)])).figures}
    assert {f.outcome for f in figures.values()} == {"VALID"}
    slow, fast, inside = (figures[name].ring_bytes_per_s for name in ("slow-link", "fast-link", "one-pod"))
    assert slow == pytest.approx(20e6 / 8, rel=0.15)
    assert fast is not None
    assert inside is not None
    assert 20 * (slow or 0) < fast <= 1.1 * 1e9 / 8
    assert inside > fast
    assert "a ring over all ranks carries" in (folder / "report.html").read_text()


def records(lab: Path) -> dict[str, RunRecord]:
    return {run.record.config.arm: run.record for run in read_runs([str(lab)])}


def test_every_arm_is_valid_and_its_figures_can_be_recomputed(lab: Path) -> None:
    runs = read_runs([str(lab)])
    assert {run.record.config.arm: run.record.verdict.outcome for run in runs} == {"one-pod": "VALID", "slow": "VALID"}
    assert [verify(run) for run in runs] == [[], []]


def test_bytes_on_the_wire_agree_with_the_backends_formula(lab: Path) -> None:
    slow = records(lab)["slow"]
    expected = slow.config.expectations.bytes_sent
    assert expected is not None
    assert slow.summary.sent_bytes_per_pod_and_step == pytest.approx(expected.per_pod_and_step, rel=0.10)
    assert records(lab)["one-pod"].summary.sent_bytes_per_pod_and_step == pytest.approx(0, abs=32 * 1024)


def test_the_slow_arm_is_slower_by_what_its_bytes_need_at_that_rate(lab: Path) -> None:
    both = records(lab)
    slow, fast, sent = (
        both["slow"].summary.step_s_median,
        both["one-pod"].summary.step_s_median,
        both["slow"].summary.sent_bytes_per_pod_and_step,
    )
    assert slow is not None
    assert fast is not None
    assert sent is not None
    on_the_wire_s = sent * 8 / RATE_BITS_PER_S
    assert both["slow"].link_shaping == "shaped"
    # A step can't be shorter than its bytes need on the wire; how much more it takes is the machine's load.
    assert slow > 0.97 * on_the_wire_s
    assert slow > fast


def test_equal_work_gives_equal_losses(lab: Path) -> None:
    losses = {(r.summary.first_loss, r.summary.last_loss) for r in records(lab).values()}
    assert len(losses) == 1


def test_the_page_stands_beside_the_records(lab: Path) -> None:
    page = (lab / "report.html").read_text()
    assert "one-pod" in page
    assert "Both arms are VALID" in page
