"""The page says what the records show, the same each time, whatever the records hold."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.record_factory import Made, efa_nodes, noisy, one_pod, two_pods, write_run
from trainer.config import PredictedRange, PredictedRun, Rental
from workloads.comparison.plots import plots
from workloads.comparison.records import read_runs
from workloads.comparison.report import Report, build_report, html, markdown, notices
from workloads.comparison.wording import NOTHING, TIMES

BIG = 93_692
"""Vocabulary of a model with which each of two gloo ranks sends 36.2 MB a step by the formula."""


def reported(folder: Path, *all_made: Made, **options: Any) -> Report:
    for number, made in enumerate(all_made):
        write_run(made, folder, f"{made.arm}-{number}")
    return build_report(read_runs([str(folder)]), **options)


def slow(**changes: Any) -> Made:
    changes = {"step_s": noisy(7.0, steps=25, spread=0.01, seed=1), **changes}
    return two_pods(**{"sent_per_step": 36.9e6, "vocabulary": BIG} | changes)


def fast(**changes: Any) -> Made:
    step_s = noisy(1.1, steps=25, spread=0.02, seed=changes.pop("seed", 2))
    return one_pod(**{"step_s": step_s, "vocabulary": BIG} | changes)


def predicted(step_s: float, **parts: float) -> dict[str, PredictedRun]:
    """As a field of the config."""
    named = {name.replace("_", " "): value for name, value in parts.items()}
    around = PredictedRange(low=step_s * 0.8, expected=step_s, high=step_s * 1.2)
    return {"predicted": PredictedRun(step_s=around, parts_s=named, slowest_link="sockets")}


def rented(capacity: Literal["onDemand", "spot"], usd: float | None, region: str = "us-east-1") -> dict[str, Rental]:
    """As a field of the config."""
    source = None if usd is None else f"price list, {region}, 2026-11-20"
    return {"rental": Rental(region=region, capacity=capacity, usd_per_node_hour=usd, price_source=source)}


def row(report: Report, heading: str, first_cell: str) -> dict[str, str]:
    """Cells of one row by column label, with their notes."""
    table = next(table for table in (report.arms, *report.tables) if table.heading == heading)
    cells = next(cells for cells in table.rows if cells[0].text == first_cell)
    return {column.label: f"{cell.text} {cell.note}".strip() for column, cell in zip(table.columns, cells, strict=True)}


class TestHeadline:
    def test_it_gives_ratio_interval_difference_and_the_wires_share(self, tmp_path: Path) -> None:
        report = reported(tmp_path, slow(), slow(step_s=noisy(7.1, steps=25, spread=0.01, seed=9)), fast(),
                          fast(seed=4))  # fmt: skip
        assert re.fullmatch(
            rf"At 50 Mbit/s each optimizer step takes 6\.\d\d{TIMES} as long as inside one pod "
            rf"\[95% CI \d\.\d\d{NOTHING}\d\.\d\d\]: 5\.9\d s more, "
            r"and the 36\.9 MB that each pod sends need 5\.90 s at that rate\.",
            report.headline,
        )
        assert report.standing == "Both arms are VALID."

    @pytest.mark.parametrize(
        ("step_s", "words"),
        [
            (9.0, "7.90 s more, of which the 36.9 MB that each pod sends explain 5.90 s at that rate."),
            (6.0, "4.90 s more, and the 36.9 MB that each pod sends need 5.90 s at that rate, "
                  "partly hidden behind compute."),
        ],
    )  # fmt: skip
    def test_it_says_how_much_of_the_difference_the_wire_explains(
        self, tmp_path: Path, step_s: float, words: str
    ) -> None:
        report = reported(tmp_path, slow(step_s=(step_s,) * 25), fast(step_s=(1.1,) * 25))
        assert report.headline.endswith(words)

    def test_arms_that_cannot_be_told_apart_are_said_to_be_so(self, tmp_path: Path) -> None:
        arms = [
            one_pod(arm=arm, step_s=noisy(median_s, steps=25, spread=0.02, seed=seed))
            for seed, (arm, median_s) in enumerate((("a", 1.1), ("a", 1.12), ("b", 1.11), ("b", 1.13)))
        ]
        report = reported(tmp_path, *arms)
        assert report.headline.endswith("these runs can't tell the two apart.")
        assert report.headline.startswith("In arm ")

    def test_two_arms_that_took_exactly_as_long_are_no_division_by_nothing(self, tmp_path: Path) -> None:
        report = reported(tmp_path, one_pod(arm="a"), one_pod(arm="b"))
        assert f"takes 1.00{TIMES} as long" in report.headline

    def test_a_third_arm_gets_a_sentence_of_its_own(self, tmp_path: Path) -> None:
        middle = slow(arm="fast-link", rate_bits_per_s=1e9,
                      step_s=noisy(1.5, steps=25, spread=0.01, seed=5))  # fmt: skip
        report = reported(tmp_path, slow(), middle, fast())
        (sentence,) = report.others
        assert re.fullmatch(rf"At 1 Gbit/s it takes 1\.3\d{TIMES} as long \[95% CI .+\]\.", sentence)

    def test_an_unproven_arm_is_marked_where_it_is_named(self, tmp_path: Path) -> None:
        report = reported(tmp_path, slow(link_shaping="unshaped"), fast())
        assert "UNPROVEN]: " in report.headline
        assert report.standing == "1 of 2 arms are VALID; two-pods-slow is UNPROVEN."

    def test_without_a_run_that_counts_it_says_so_and_shows_no_ratio(self, tmp_path: Path) -> None:
        report = reported(tmp_path, slow(status="failed"))
        assert report.headline.startswith("No run counts")
        assert TIMES not in html(report)

    def test_one_arm_alone_is_told_without_a_comparison(self, tmp_path: Path) -> None:
        assert re.fullmatch(r"Inside one pod each optimizer step takes 1\.1\d s\.", reported(tmp_path, fast()).headline)

    def test_where_no_rate_is_dialled_the_prediction_explains(self, tmp_path: Path) -> None:
        cloud = efa_nodes(
            step_s=noisy(4.0, steps=25, spread=0.01, seed=1),
            config=predicted(3.9, compute=1.0, exposed_communication=2.9),
        )
        local = efa_nodes(
            arm="p4d24xl-1x4-efa1",
            pods=1,
            nodes=1,
            ranks_per_pod=4,
            sent_per_step=0.0,
            step_s=noisy(1.0, steps=25, spread=0.01, seed=2),
            config=predicted(1.1, compute=1.0, exposed_communication=0.1),
        )
        report = reported(tmp_path, cloud, local)
        assert report.headline.startswith("Over NET/Libfabric+GDRDMA between 2 pods each optimizer step takes")
        assert report.headline.endswith("of which the prediction puts 2.80 s in communication.")


class TestTables:
    def test_an_invalid_arm_shows_its_reasons_and_no_figures(self, tmp_path: Path) -> None:
        report = reported(tmp_path, slow(arm="wrong"), slow(arm="broken", sent_per_step=1e6), fast())
        cells = row(report, "Arms", "broken")
        assert cells["Verdict"] == "INVALID 0 of 1 runs count"
        assert cells["Step"] == cells["Against baseline"] == NOTHING
        (reasons,) = [reasons for arm, _, reasons in report.reasons if arm == "broken"]
        assert reasons[0].startswith("pod 0 sent 1.000 MB a step by its interface counters, predicted 36.200")

    def test_real_tokens_stand_apart_from_padding(self, tmp_path: Path) -> None:
        report = reported(tmp_path, two_pods(real_share=0.25, step_s=(2.0,) * 20))
        cells = row(report, "Arms", "two-pods-slow")
        # 2 ranks x 4 x 128 slots in 2 s, a quarter of them real.
        assert (cells["Real tokens/s"], cells["Padding/s"]) == ("128", "384")

    def test_mfu_is_a_figure_with_a_known_peak_and_na_without(self, tmp_path: Path) -> None:
        assert row(reported(tmp_path / "cpu", fast()), "Arms", "one-pod")["MFU"] == "n/a"
        cloud = row(reported(tmp_path / "gpu", efa_nodes()), "Arms", "p4d24xl-2x2-efa1")
        assert cloud["MFU"].endswith("%")

    def test_cost_counts_the_nodes_at_the_records_own_price(self, tmp_path: Path) -> None:
        made = efa_nodes(step_s=(1.8,) * 20, config=rented("onDemand", 20.0, "eu-west-1"))
        report = reported(tmp_path, made)
        cells = row(report, "Arms", made.arm)
        # 1,000 steps of 1.8 s are half an hour of two nodes at $20.
        assert cells["Cost of 1,000 steps"].startswith("$20.00")
        assert cells["Cost of 1,000 steps"].endswith("on demand in eu-west-1")
        paid = row(report, "What the nodes cost", made.arm)
        assert (paid["Nodes"], paid["Capacity"], paid["Region"]) == ("2", "on demand", "eu-west-1")
        assert (paid["USD per node and hour"], paid["Price from"]) == ("$20.00", "price list, eu-west-1, 2026-11-20")

    def test_cost_counts_nodes_and_not_pods(self, tmp_path: Path) -> None:
        one_node = efa_nodes(nodes=1, step_s=(1.8,) * 20, config=rented("onDemand", 20.0))
        report = reported(tmp_path, one_node)
        assert row(report, "What the nodes cost", one_node.arm)["Nodes"] == "1"
        assert row(report, "Arms", one_node.arm)["Cost of 1,000 steps"].startswith("$10.00")

    def test_spot_has_no_price_and_costs_nothing_known(self, tmp_path: Path) -> None:
        made = efa_nodes(config=rented("spot", None))
        report = reported(tmp_path, made)
        assert "Cost of 1,000 steps" not in row(report, "Arms", made.arm)
        paid = row(report, "What the nodes cost", made.arm)
        assert (paid["Capacity"], paid["USD per node and hour"]) == ("spot", "n/a")

    def test_repeats_that_were_rented_differently_have_no_one_price(self, tmp_path: Path) -> None:
        report = reported(tmp_path, efa_nodes(config=rented("spot", None)), efa_nodes(config=rented("onDemand", 20.0)))
        assert row(report, "What the nodes cost", "p4d24xl-2x2-efa1")["Capacity"] == "differs between its runs"
        assert "Cost of 1,000 steps" not in row(report, "Arms", "p4d24xl-2x2-efa1")

    def test_a_machine_of_ones_own_costs_nothing_and_no_table_says_so(self, tmp_path: Path) -> None:
        assert "What the nodes cost" not in [table.heading for table in reported(tmp_path, slow()).tables]

    def test_bytes_stand_beside_their_prediction_and_the_wires_time(self, tmp_path: Path) -> None:
        cells = row(reported(tmp_path, slow()), "Bytes sent per pod and step", "two-pods-slow")
        assert (cells["Measured"], cells["Predicted"], cells["Difference"]) == ("36.9 MB", "36.2 MB", "+1.9%")
        assert cells["Wire time at the rate"] == "5.90 s"

    def test_a_measurement_outside_of_its_prediction_is_marked(self, tmp_path: Path) -> None:
        report = reported(tmp_path, slow(config=predicted(3.0, compute=1.0)))
        cells = row(report, "Predicted and measured time", "two-pods-slow")
        assert cells["Predicted step"] == "3.00 s 2.40 s to 3.60 s"
        assert cells["Measured / predicted"] == "2.33 outside the range"
        assert cells["Parts of the prediction"] == "compute 1.00 s slowest link: sockets"

    def test_what_differed_between_the_arms_is_listed_with_its_arms(self, tmp_path: Path) -> None:
        report = reported(tmp_path, slow(), fast(versions={"torch": "2.16.0"}), allow=["versions"])
        cells = row(report, "What differed between the arms", "version of torch")
        assert cells["Values"] == "2.16.0 (one-pod); 2.15.0 (two-pods-slow)"
        assert any("versions.torch" in notice for notice in report.notices)

    def test_links_show_what_was_expected_and_what_was_used(self, tmp_path: Path) -> None:
        cells = row(reported(tmp_path, slow()), "Which links carried it", "two-pods-slow")
        assert cells["Expected"] == "TCP"
        assert cells["Used, in directed pairs"] == "TCP: 2 10.90.0.1 -> 10.90.0.2"
        assert cells["Rate dialled"] == "50 Mbit/s"

    def test_every_run_is_listed(self, tmp_path: Path) -> None:
        report = reported(tmp_path, slow(), slow(status="interrupted"), fast())
        assert row(report, "Runs", "two-pods-slow-1")["Status"] == "interrupted"
        assert len(next(table for table in report.tables if table.heading == "Runs").rows) == 3


class TestEditedRecords:
    @staticmethod
    def edited(folder: Path, run_id: str, edit: Callable[[dict[str, Any]], None]) -> None:
        file = folder / run_id / "record.json"
        record = json.loads(file.read_text())
        edit(record)
        file.write_text(json.dumps(record))

    def test_a_verdict_edited_to_valid_shows_no_speed_up(self, tmp_path: Path) -> None:
        reported(tmp_path, slow(sent_per_step=1e6), fast())
        self.edited(tmp_path, "two-pods-slow-0", lambda r: r.update(verdict={"outcome": "VALID", "reasons": []}))
        report = build_report(read_runs([str(tmp_path)]))
        assert row(report, "Arms", "two-pods-slow")["Verdict"].startswith("INVALID")
        assert row(report, "Arms", "two-pods-slow")["Against baseline"] == NOTHING
        (reasons,) = [reasons for arm, _, reasons in report.reasons if arm == "two-pods-slow"]
        assert reasons[0].startswith(
            "the record was changed after it was written: verdict.outcome: the record says VALID, its raw lines give"
        )
        assert reasons[1].startswith("pod 0 sent 1.000 MB a step")

    def test_edited_step_lines_show_their_own_figures_and_an_invalid_run(self, tmp_path: Path) -> None:
        reported(tmp_path, slow(step_s=(7.0,) * 25), fast())
        for rank in (0, 1):
            file = tmp_path / "two-pods-slow-0" / "steps" / f"rank-{rank:05}.jsonl"
            file.write_text(file.read_text().replace('"seconds":7.0', '"seconds":0.5'))
        report = build_report(read_runs([str(tmp_path)]))
        shown = row(report, "Runs", "two-pods-slow-0")
        assert (shown["Verdict"], shown["Median step"]) == ("INVALID", "0.500 s")


class TestPage:
    def test_it_is_the_same_to_the_byte_when_rebuilt(self, tmp_path: Path) -> None:
        first = reported(tmp_path, slow(), fast())
        again = build_report(tuple(reversed(read_runs([str(tmp_path)]))))
        assert html(first) == html(again)
        assert markdown(first) == markdown(again)

    def test_it_fetches_nothing_and_runs_nothing(self, tmp_path: Path) -> None:
        page = html(reported(tmp_path, slow(), fast()))
        names = ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink")
        assert set(re.findall(r"https?://[^\"'\s)]+", page)) <= set(names)
        assert "<script" not in page
        assert not re.search(r"\b(?:src|@import)\b", page)

    def test_every_id_is_there_once_and_every_reference_finds_its_id(self, tmp_path: Path) -> None:
        page = html(reported(tmp_path, slow(), fast()))
        ids = re.findall(r'\bid="([^"]+)"', page)
        assert len(ids) == len(set(ids))
        references = re.findall(r'(?:url\(|href=")#([^")]+)', page)
        assert references
        assert set(references) <= set(ids)

    def test_its_tags_are_balanced(self, tmp_path: Path) -> None:
        checker = Balance()
        checker.feed(html(reported(tmp_path, slow(sent_per_step=1e6), fast())))
        assert checker.open == []

    def test_plots_take_every_colour_from_the_page(self, tmp_path: Path) -> None:
        report = reported(tmp_path, slow(), fast())
        drawn = plots(report.comparison, report.figures)
        assert {plot.name for plot in drawn} == {"distributions", "ratios", "bytes", "courses", "clock"}
        for plot in drawn:
            assert "var(--ink)" in plot.svg
            assert not re.findall(r"#[0-9a-f]{6}\b", plot.svg), plot.name

    def test_what_a_record_holds_cannot_become_markup(self, tmp_path: Path) -> None:
        evil = "<script>alert(1)</script>|x"
        report = reported(tmp_path, slow(), fast(versions={"torch": evil}), allow=["versions"])
        assert "<script" not in html(report)
        assert "&lt;script" in html(report)
        line = next(line for line in markdown(report).splitlines() if line.startswith("| version of torch"))
        assert "<script" not in line
        assert line.count(" | ") == 1

    def test_losses_that_could_not_be_compared_are_not_called_equal(self, tmp_path: Path) -> None:
        report = reported(tmp_path, slow(), fast())
        assert any("equal to the last digit" in line for line in report.method)
        unknown = replace(report.comparison, loss_difference=None, uncompared_losses=("two-pods-slow-0",))
        alone = reported(tmp_path / "alone", fast())
        assert not any("last digit" in line for line in alone.method)
        assert any("could not be compared" in line and "two-pods-slow-0" in line for line in notices(unknown))

    def test_one_run_an_arm_is_warned_about(self, tmp_path: Path) -> None:
        assert any("Each arm ran once" in notice for notice in reported(tmp_path, slow(), fast()).notices)

    def test_ten_runs_of_a_thousand_steps_stay_under_two_megabytes(self, tmp_path: Path) -> None:
        arms = [
            two_pods(arm=f"arm-{n % 5}", step_s=noisy(1.0 + n % 5, steps=1000, spread=0.05, seed=n),
                     sent_per_step=2e6)
            for n in range(10)
        ]  # fmt: skip
        assert len(html(reported(tmp_path, *arms)).encode()) < 2_000_000


class TestMarkdown:
    def test_it_carries_the_same_sentences_and_tables(self, tmp_path: Path) -> None:
        report = reported(tmp_path, slow(), fast())
        text = markdown(report)
        assert f"**{report.headline}**" in text
        for table in (report.arms, *report.tables):
            assert f"## {table.heading}" in text
            for cells in table.rows:
                assert all(cell.text in text for cell in cells)

    def test_each_line_of_a_table_has_the_columns_of_its_heading(self, tmp_path: Path) -> None:
        text = markdown(reported(tmp_path, slow(), fast()))
        blocks = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
        assert len(blocks) >= 5
        for block in blocks:
            assert len({line.count("|") for line in block.splitlines()}) == 1


class Balance(HTMLParser):
    """Follows open tags; HTML's void elements and SVG's self-closed ones need no end."""

    VOID = frozenset({"meta", "br", "hr", "link", "img", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        """Closed in itself."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


@pytest.mark.parametrize("outcome", ["VALID", "INVALID", "UNPROVEN"])
def test_each_outcome_has_its_badge(tmp_path: Path, outcome: str) -> None:
    made = {"VALID": slow(), "INVALID": slow(sent_per_step=1.0), "UNPROVEN": slow(link_shaping="unshaped")}
    assert f'<span class="badge {outcome}">{outcome}</span>' in html(reported(tmp_path, made[outcome]))
