"""`topo report`."""

import html
import re
from pathlib import Path

import pytest

from tests.record_factory import one_pod, two_pods, write_run


@pytest.fixture
def records(tmp_path: Path) -> Path:
    folder = tmp_path / "records"
    write_run(one_pod(), folder, "run-a")
    write_run(two_pods(), folder, "run-b")
    return folder


def test_the_page_is_written_and_its_headline_said(topo, records, tmp_path):
    called = topo("report", str(records), "--out", str(tmp_path / "page.html"))
    assert (called.code, called.err) == (0, "")
    headline, path = called.out.splitlines()
    assert path == str(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert headline in html.unescape(re.sub(r"<[^>]+>", "", page))


def test_what_speaks_against_a_run_is_said_on_the_terminal_too(topo, records, tmp_path):
    lines = records / "run-b" / "steps" / "rank-00000.jsonl"
    lines.write_text(re.sub(r'"seconds":\d+\.\d+', '"seconds":9.5', lines.read_text()))
    called = topo("report", str(records), "--out", str(tmp_path / "page.html"))
    assert called.err.startswith("topo: arm ")
    assert "the record was changed after it was written" in called.err


def test_the_page_is_the_same_to_the_byte_when_built_again(topo, records, tmp_path):
    for name in ("one.html", "two.html"):
        topo("report", str(records), "--out", str(tmp_path / name))
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_a_name_that_ends_with_md_gets_markdown(topo, records, tmp_path):
    topo("report", str(records), "--out", str(tmp_path / "page.md"))
    assert (tmp_path / "page.md").read_text().startswith("# ")


def test_runs_that_did_different_work_are_refused_and_no_page_is_written(topo, records, tmp_path):
    write_run(two_pods(arm="other"), records, "run-c")
    record = records / "run-c" / "record.json"
    record.write_text(record.read_text().replace('"seed": 7', '"seed": 8'))
    called = topo("report", str(records), "--out", str(tmp_path / "page.html"))
    assert called.code == 2
    assert "seed" in called.err
    assert not (tmp_path / "page.html").exists()


def test_a_difference_that_is_allowed_by_name_is_reported(topo, records, tmp_path):
    record = records / "run-b" / "record.json"
    record.write_text(record.read_text().replace('"seed": 7', '"seed": 8'))
    called = topo("report", str(records), "--allow", "seed", "--out", str(tmp_path / "page.html"))
    assert called.code == 0, called.err


def test_a_folder_without_records_is_refused(topo, tmp_path):
    called = topo("report", str(tmp_path))
    assert called.code == 2
    assert "no record found" in called.err


def test_the_page_shows_what_the_record_says_was_predicted(topo, records, tmp_path):
    record = records / "run-b" / "record.json"
    record.write_text(record.read_text().replace("dialled", "as it was named then"))
    topo("report", str(records), "--out", str(tmp_path / "page.md"))
    assert "TCP at 0.05 Gbit/s, as it was named then" in (tmp_path / "page.md").read_text()


def test_a_run_whose_record_was_edited_stands_there_as_invalid(topo, records, tmp_path):
    record = records / "run-b" / "record.json"
    record.write_text(record.read_text().replace('"relative_tolerance": 0.1', '"relative_tolerance": 0.9'))
    called = topo("report", str(records), "--out", str(tmp_path / "page.md"))
    assert called.code == 0
    assert "the record was changed after it was written" in (tmp_path / "page.md").read_text()
