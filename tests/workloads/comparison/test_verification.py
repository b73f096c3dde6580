"""What a record says is derived again from its raw lines and its plan."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.record_factory import Made, efa_nodes, one_pod, two_pods, write_run
from workloads.comparison.records import Run, read_runs
from workloads.comparison.verification import recomputed, unchecked, verify

Edit = Callable[[dict[str, Any]], Any]


def only_run(folder: Path) -> Run:
    (run,) = read_runs([str(folder)])
    return run


def edited(folder: Path, edit: Edit, made: Made | None = None) -> Run:
    file = write_run(made or two_pods(), folder, "run") / "record.json"
    record = json.loads(file.read_text())
    edit(record)
    file.write_text(json.dumps(record))
    return only_run(folder)


@pytest.mark.parametrize(
    "made",
    [
        one_pod(),
        two_pods(),
        two_pods(pods=3, ranks_per_pod=2),
        efa_nodes(),
        two_pods(status="failed"),
        two_pods(real_share=0.5),
    ],
)
def test_an_untouched_record_derives_to_itself(tmp_path: Path, made: Made) -> None:
    write_run(made, tmp_path, "run")
    run = only_run(tmp_path)
    assert verify(run) == []
    assert unchecked(run) == []
    assert recomputed(run) == run


def test_an_edited_step_line_shows_in_the_figures_and_in_the_clock(tmp_path: Path) -> None:
    place = write_run(two_pods(), tmp_path, "run")
    for rank in (0, 1):
        file = place / "steps" / f"rank-{rank:05}.jsonl"
        file.write_text(file.read_text().replace('"seconds":1.0', '"seconds":0.5'))
    found = verify(only_run(tmp_path))
    assert "summary.step_s_median: the record says 1.0, its raw lines give 0.5" in found
    assert "ranks.1.clock.timed_s: the record says 20.0, its raw lines give 10.0" in found


def test_a_difference_beyond_rounding_is_found_and_rounding_is_not(tmp_path: Path) -> None:
    def scaled(by: float) -> Edit:
        return lambda record: record["summary"].update(step_s_mean=record["summary"]["step_s_mean"] * by)

    assert verify(edited(tmp_path / "rounding", scaled(1 + 1e-12))) == []
    (found,) = verify(edited(tmp_path / "edited", scaled(1 + 1e-6)))
    assert found.startswith("summary.step_s_mean: the record says 1.000001, its raw lines give 1.0")


def test_an_edited_link_shaping_shows_in_the_verdict(tmp_path: Path) -> None:
    found = verify(edited(tmp_path, lambda record: record.update(link_shaping="unshaped")))
    assert found[0] == "verdict.outcome: the record says VALID, its raw lines give UNPROVEN"


def test_an_edited_log_changes_the_transports(tmp_path: Path) -> None:
    place = write_run(efa_nodes(), tmp_path, "run")
    file = place / "nccl" / "rank-00001.log"
    file.write_text(file.read_text().replace("NET/Libfabric/0/GDRDMA", "NET/Socket/0"))
    found = verify(only_run(tmp_path))
    assert any(line.startswith("transports.") and "NET/Socket" in line for line in found)
    assert any(line.startswith("verdict.outcome: the record says VALID") for line in found)


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (
            lambda r: r["config"]["expectations"]["bytes_sent"].update(relative_tolerance=9.0),
            "config.expectations.bytes_sent: the record says ",
        ),
        (
            lambda r: r["config"]["expectations"].update(link_rate_bits_per_s=1e9),
            "config.expectations.link_rate_bits_per_s: the record says 1000000000.0, "
            "topology and recipe give 50000000.0",
        ),
        (
            lambda r: r["config"].update(topology="cpu-2x1-tcp-1gbit"),
            "config.expectations.link_rate_bits_per_s: the record says 50000000.0, "
            "topology and recipe give 1000000000.0",
        ),
        (
            lambda r: r["config"]["recipe"].update(accumulation=2),
            "config.expectations.bytes_sent: the record says ",
        ),
        (lambda r: r.update(run_id="another"), "run_id: the record says another, its folder is run"),
        (lambda r: r.update(model_parameters=7), "model_parameters: the record says 7, its architecture gives 666688"),
        (
            lambda r: r["ranks"][0]["clock"].update(timed_s=3.0),
            "ranks.0.clock.timed_s: the record says 3.0, its raw lines give 20.0",
        ),
    ],
)
def test_an_edit_by_hand_is_named_with_both_values_and_makes_the_run_invalid(
    tmp_path: Path, edit: Edit, sentence: str
) -> None:
    run = edited(tmp_path, edit)
    assert any(line.startswith(sentence) for line in verify(run)), verify(run)
    verdict = recomputed(run).record.verdict
    assert verdict.outcome == "INVALID"
    assert verdict.reasons[0].startswith("the record was changed after it was written: ")
    assert sentence in verdict.reasons[0]


def test_a_log_that_is_gone_is_named_and_no_figure_depends_on_it(tmp_path: Path) -> None:
    place = write_run(two_pods(), tmp_path, "run")
    (place / "logs" / "rank-00001.log").unlink()
    run = only_run(tmp_path)
    assert verify(run) == ["logs/rank-00001.log: missing from a complete record"]
    assert recomputed(run).record.verdict.outcome == "VALID"


def test_what_a_machine_of_no_catalogue_is_held_to_is_said_to_be_unchecked(tmp_path: Path) -> None:
    run = edited(tmp_path, lambda record: record["config"].update(topology="rtx9000x2-2x1-tcp"))
    assert unchecked(run) == [
        "what topology rtx9000x2-2x1-tcp is held to, because the catalogue doesn't know its machine"
    ]
