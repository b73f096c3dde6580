"""The page of probe-only runs: what links carry, what is slow, and what it means for the step."""

from pathlib import Path
from typing import Any

import pytest

from tests.probe_factory import probe_of, sweep_of
from tests.record_factory import Made, one_pod, two_pods, write_run
from trainer.bandwidth import least_sent_bytes
from workloads.cli.main import topo
from workloads.comparison.probe_report import ProbeReport, build_probe_report, probe_html, probe_markdown
from workloads.comparison.records import read_runs
from workloads.comparison.report import build_report

PROBE_ONLY: dict[str, Any] = {"steps": 0, "warmup_steps": 0, "probe_s": 1.0}


def inside(gb_per_s: float = 1.2, **probe: Any) -> Made:
    return one_pod(step_s=(), config=PROBE_ONLY, probe=probe_of(sweep_of("same-pod", gb_per_s), sent=(0,), **probe))


def across(gb_per_s: float = 0.006, **probe: Any) -> Made:
    return two_pods(step_s=(), config=PROBE_ONLY, probe=probe_of(sweep_of("same-node", gb_per_s), **probe))


def written(folder: Path, *runs: Made) -> list[str]:
    return [str(write_run(made, folder, f"{made.arm}-{number}")) for number, made in enumerate(runs)]


def report(folder: Path, *runs: Made) -> ProbeReport:
    return build_probe_report(read_runs(written(folder, *runs)))


def cells(report: ProbeReport, heading: str) -> list[list[str]]:
    (table,) = [t for t in (report.arms, *report.tables) if t.heading == heading]
    return [[cell.text for cell in row] for row in table.rows]


def test_the_headline_is_the_ratio_of_the_rings_and_the_step_on_the_slow_one(tmp_path: Path) -> None:
    page = report(tmp_path, across(), inside())
    assert [arm.name for arm in page.figures] == ["one-pod", "two-pods-slow"]
    fast, slow = (arm.ring_bytes_per_s or 0 for arm in page.figures)
    assert f"{fast / slow:.0f}\N{MULTIPLICATION SIGN} as much" in page.headline
    assert "In arm two-pods-slow a ring over all ranks carries" in page.headline
    assert "the planned step would take" in page.headline
    assert page.standing == "2 of 2 arms are VALID."


def test_each_link_class_has_its_row_and_its_curve(tmp_path: Path) -> None:
    page = report(tmp_path, across(), inside())
    rows = cells(page, "What the links carry")
    assert [(row[0], row[1], row[2]) for row in rows] == [
        ("one-pod", "VALID", "same-pod"),
        ("two-pods-slow", "VALID", "same-node"),
    ]
    assert rows[1][-1] == "50 Mbit/s"
    text = probe_html(page)
    for collective in ("all-reduce", "all-gather", "reduce-scatter"):
        assert f'id="plot-{collective}"' in text
    assert text.count("message size, MB") == 3
    assert "two-pods-slow, same-node" in text


def test_repeats_give_medians(tmp_path: Path) -> None:
    page = report(tmp_path, *(across(rate) for rate in (0.005, 0.006, 0.1)))
    (arm,) = page.figures
    alone = report(tmp_path / "alone", across(0.006)).figures[0]
    assert (arm.runs, arm.ring_bytes_per_s) == (3, alone.ring_bytes_per_s)


def test_a_slow_rank_is_a_notice(tmp_path: Path) -> None:
    page = report(tmp_path, across(matmul_tflops=(1.0, 0.3)))
    assert page.notices == ("two-pods-slow: rank 1 multiplies matrices at 0.3 TFLOP/s, the others' median is 1.",)


def test_a_run_that_trained_names_its_straggler_too(tmp_path: Path) -> None:
    straggling = two_pods(probe=probe_of(sweep_of("same-node", 0.006), matmul_tflops=(1.0, 0.3)))
    (run,) = read_runs(written(tmp_path, straggling))
    sentence = "rank 1 multiplies matrices at 0.3 TFLOP/s, the others' median is 1"
    assert f"two-pods-slow: {sentence}, when the ranks of two-pods-slow-0 were probed." in build_report([run]).notices


def test_an_invalid_run_shows_its_reason_and_no_figure(tmp_path: Path) -> None:
    least = least_sent_bytes(probe_of(sweep_of("same-node", 0.006)))
    page = report(tmp_path, across(sent=(2 * least, 10)))
    assert page.headline.startswith("No run counts")
    (reasons,) = page.reasons
    assert "pod 1 sent 0.000 MB by its interface counters" in reasons[2][0]
    assert cells(page, "What the links carry") == [["two-pods-slow", "INVALID", *["\N{EN DASH}"] * 6]]


def test_the_step_is_predicted_with_the_assumed_and_with_the_measured_ring(tmp_path: Path) -> None:
    ((name, assumed, measured),) = cells(report(tmp_path, across()), "What it means for the step")
    assert name == "two-pods-slow"
    assert assumed == "0.100 s"
    assert measured not in ("\N{EN DASH}", assumed)


def test_the_page_is_the_same_at_each_build_and_markdown_says_the_same(tmp_path: Path) -> None:
    page = report(tmp_path, across(), inside())
    again = build_probe_report(read_runs([str(tmp_path)]))
    assert probe_html(page) == probe_html(again)
    assert page.headline in probe_markdown(page)


def test_runs_that_trained_are_reported_apart(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="trained, and others only probed; report the two kinds apart"):
        report(tmp_path, across(), one_pod())


def test_runs_that_differ_in_what_must_be_equal_are_refused(tmp_path: Path) -> None:
    other = two_pods(arm="other", step_s=(), config=PROBE_ONLY | {"seed": 8}, probe=across().probe)
    with pytest.raises(ValueError, match="seed: 8 in other; 7 in two-pods-slow"):
        report(tmp_path, across(), other)


def test_topo_report_and_verify_know_probe_only_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = written(tmp_path, across(), inside())
    page = tmp_path / "page.md"
    topo.main(["report", *folders, "--out", str(page)], standalone_mode=False)
    assert "# What the links carry" in page.read_text()
    assert topo.main(["verify", *folders], standalone_mode=False) in (0, None)
    assert capsys.readouterr().out.count("VALID, as recorded") == 2
