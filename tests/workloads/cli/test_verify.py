"""`topo verify`."""

from tests.record_factory import one_pod, two_pods, write_run


def test_an_honest_record_is_true(topo, tmp_path):
    write_run(one_pod(), tmp_path / "a", "run-a")
    write_run(two_pods(), tmp_path / "b", "run-b")
    called = topo("verify", str(tmp_path))
    assert called.code == 0
    assert called.out.splitlines() == ["run-a: VALID, as recorded", "run-b: VALID, as recorded"]


def test_a_figure_that_its_lines_do_not_give_is_shown_with_both_values(topo, tmp_path):
    folder = write_run(one_pod(), tmp_path / "a", "run-a")
    record = next(folder.rglob("record.json"))
    record.write_text(record.read_text().replace('"outcome": "VALID"', '"outcome": "UNPROVEN"'))
    called = topo("verify", str(tmp_path))
    assert called.code == 1
    assert "verdict.outcome: the record says UNPROVEN, its raw lines give VALID" in called.out


def test_a_folder_without_records_cannot_be_verified(topo, tmp_path):
    called = topo("verify", str(tmp_path))
    assert called.code == 2
    assert "no record found" in called.err


def test_a_log_that_is_gone_is_named(topo, tmp_path):
    folder = write_run(one_pod(), tmp_path, "run-a")
    (folder / "logs" / "rank-00000.log").unlink()
    called = topo("verify", str(tmp_path))
    assert called.code == 1
    assert "  logs/rank-00000.log: missing from a complete record" in called.out.splitlines()
