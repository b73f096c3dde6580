"""The straggler of an arm is named, rank by rank."""

from dataclasses import replace
from pathlib import Path

from tests.probe_factory import probe_of, sweep_of
from tests.record_factory import Made, one_pod, two_pods, write_run
from trainer.record import StepLine
from trainer.summary import summarize
from workloads.comparison.compare import compare
from workloads.comparison.ranks import late_ranks
from workloads.comparison.records import Run, read_runs
from workloads.comparison.report import build_report
from workloads.comparison.sections import runs_table


def read(folder: Path, made: Made) -> Run:
    (run,) = read_runs([str(write_run(made, folder, "run-1"))])
    return run


def with_wait(run: Run, rank: int, wait_s: float) -> Run:
    def waiting(line: StepLine) -> StepLine:
        return line.model_copy(update={"data_wait_s": wait_s})

    steps = {**run.steps, rank: tuple(map(waiting, run.steps[rank]))}
    summary = summarize(run.record.config, steps, run.record.ranks)
    return replace(run, steps=steps, record=run.record.model_copy(update={"summary": summary}))


def test_equal_ranks_hold_nobody_up(tmp_path: Path) -> None:
    assert late_ranks(read(tmp_path, two_pods())) == ()


def test_a_rank_that_waits_for_its_data_longer_than_the_others_holds_them_up(tmp_path: Path) -> None:
    run = read(tmp_path, two_pods(data_wait_s=0.001))
    assert late_ranks(with_wait(run, 1, 0.3)) == (1,)


def test_a_wait_that_is_nothing_beside_a_step_is_none(tmp_path: Path) -> None:
    run = read(tmp_path, two_pods(data_wait_s=0.001))
    assert late_ranks(with_wait(run, 1, 0.01)) == ()


def test_the_page_shows_each_rank_and_says_who_is_late(tmp_path: Path) -> None:
    probe = probe_of(sweep_of("same-node", 0.006), matmul_tflops=(1.0, 0.9))
    late = with_wait(read(tmp_path, two_pods(data_wait_s=0.001, probe=probe)), 1, 0.3)
    page = build_report([late])
    (table,) = [table for table in page.tables if table.heading == "Ranks"]
    shown = [[cell.text for cell in row] for row in table.rows]
    assert [row[:3] for row in shown] == [["two-pods-slow", "0", "node-0"], ["two-pods-slow", "1", "node-0"]]
    assert [row[4:6] for row in shown] == [["1.00 ms", "1.00 TFLOP/s"], ["0.300 s", "0.900 TFLOP/s"]]
    assert table.rows[1][4].note == "holds the others up"
    assert "two-pods-slow: rank 1 of run-1 waits for its data, and the others for it." in page.notices


def test_a_run_that_went_on_from_a_checkpoint_says_which_start_it_is(tmp_path: Path) -> None:
    run = read(tmp_path, one_pod())
    later = replace(run, record=run.record.model_copy(update={"starts": 2, "resumed_after_step": 8}))
    notes = {each.record.starts: runs_table(compare([each])).rows[0][4].note for each in (run, later)}
    assert notes == {1: "", 2: "start 2, from step 9"}


def test_without_a_probe_the_device_is_not_known(tmp_path: Path) -> None:
    page = build_report([read(tmp_path, one_pod())])
    (table,) = [table for table in page.tables if table.heading == "Ranks"]
    assert {row[5].text for row in table.rows} == {"n/a"}
