"""The page says what the records show, the same each time, whatever the records hold."""

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.record_factory import Made, efa_nodes, noisy, one_pod, two_pods, write_run
from workloads.comparison.plots import plots
from workloads.comparison.predicted import Predicted
from workloads.comparison.records import read_runs
from workloads.comparison.report import Report, build_report, html, markdown
from workloads.comparison.wording import NOTHING, TIMES
from workloads.planning.prediction import Range


def reported(folder: Path, *all_made: Made, **options: Any) -> Report:
    for number, made in enumerate(all_made):
        write_run(made, folder, f"{made.arm}-{number}")
    return build_report(read_runs([str(folder)]), **options)


def slow(**changes: Any) -> Made:
    changes = {"step_s": noisy(7.0, steps=25, spread=0.01, seed=1), **changes}
    return two_pods(**{"sent_per_step": 36.9e6, "predicted_sent_per_step": 36.2e6} | changes)


def fast(**changes: Any) -> Made:
    return one_pod(step_s=noisy(1.1, steps=25, spread=0.02, seed=changes.pop("seed", 2)), **changes)


def predicted(step_s: float, **parts: float) -> Predicted:
    def around(value: float) -> Range:
        return Range(low=value * 0.8, expected=value, high=value * 1.2)

    named = {name.replace("_", " "): value for name, value in parts.items()}
    return Predicted(step_s=around(step_s), sent_bytes_per_pod_and_step=around(36.2e6), parts_s=named)


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
        report = reported(tmp_path, slow(step_s=(step_s,) * 25), one_pod(step_s=(1.1,) * 25))
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
        middle = slow(arm="fast-link", topology="cpu-2x1-tcp-1gbit", rate_bits_per_s=1e9,
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
        cloud = efa_nodes(step_s=noisy(4.0, steps=25, spread=0.01, seed=1))
        same_work = {"backend": "nccl", "machine": "p4d.24xlarge", "arm": "p4d24xl-1x4-efa4"}
        local = one_pod(**same_work, topology="p4d24xl-1x4-efa4", ranks_per_pod=4,
                        step_s=noisy(1.0, steps=25, spread=0.01, seed=2))  # fmt: skip
        predictions: Mapping[str, Predicted] = {
            cloud.arm: predicted(3.9, compute=1.0, exposed_communication=2.9),
            local.arm: predicted(1.1, compute=1.0, exposed_communication=0.1),
        }
        report = reported(tmp_path, cloud, local, predictions=predictions)
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

    def test_cost_counts_the_nodes_and_stands_only_where_a_price_is_known(self, tmp_path: Path) -> None:
        made = efa_nodes(step_s=(1.8,) * 20)
        priced = reported(tmp_path, made, prices={"p4d.24xlarge": 20.0})
        cells = row(priced, "Arms", made.arm)
        # 1,000 steps of 1.8 s are half an hour of two nodes at $20.
        assert cells["Cost of 1,000 steps"].startswith("$20.00")
        assert "Cost of 1,000 steps" not in row(reported(tmp_path / "free", made), "Arms", made.arm)

    def test_bytes_stand_beside_their_prediction_and_the_wires_time(self, tmp_path: Path) -> None:
        cells = row(reported(tmp_path, slow()), "Bytes sent per pod and step", "two-pods-slow")
        assert (cells["Measured"], cells["Predicted"], cells["Difference"]) == ("36.9 MB", "36.2 MB", "+1.9%")
        assert cells["Wire time at the rate"] == "5.90 s"

    def test_a_measurement_outside_of_its_prediction_is_marked(self, tmp_path: Path) -> None:
        report = reported(tmp_path, slow(), predictions={"two-pods-slow": predicted(3.0, compute=1.0)})
        cells = row(report, "Predicted and measured time", "two-pods-slow")
        assert cells["Predicted step"] == "3.00 s 2.40 s to 3.60 s"
        assert cells["Measured / predicted"] == "2.33 outside the range"
        assert cells["Parts of the prediction"] == "compute 1.00 s"

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
        page = html(reported(tmp_path, slow(), fast(), predictions={"one-pod": predicted(1.0, compute=1.0)}))
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
