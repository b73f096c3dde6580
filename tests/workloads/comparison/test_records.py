"""Records are read whole, from folders and URIs, or refused with one sentence that names the file."""

import json
from pathlib import Path

import fsspec
import pytest

from tests.record_factory import efa_nodes, one_pod, two_pods, write_run
from workloads.comparison.records import read_runs


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    write_run(one_pod(), tmp_path / "lab", "a-1")
    write_run(two_pods(), tmp_path / "lab", "b-1")
    return tmp_path / "lab"


def refusal(*locations: Path | str) -> str:
    with pytest.raises(ValueError, match=r".+") as caught:
        read_runs([str(location) for location in locations])
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def test_a_folder_of_records_gives_its_runs_in_order_with_lines_by_rank(lab: Path) -> None:
    one, two = read_runs([str(lab)])
    assert (one.record.run_id, two.record.run_id) == ("a-1", "b-1")
    assert sorted(one.steps) == [0, 1]
    assert [line.step for line in one.steps[1]] == list(range(1, 23))


def test_a_record_folder_its_record_json_and_a_file_uri_name_the_same_run(lab: Path) -> None:
    place = lab / "a-1"
    (run,) = read_runs([str(place), str(place / "record.json"), place.as_uri(), f"{place}/"])
    assert run.location == place.as_uri()


def test_other_file_systems_are_read_by_their_uri(lab: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(lab), "/records/", recursive=True)
    assert [run.record.run_id for run in read_runs(["memory://records"])] == ["a-1", "b-1"]


def test_nccl_logs_come_with_the_run(tmp_path: Path) -> None:
    write_run(efa_nodes(), tmp_path, "p4d")
    (run,) = read_runs([str(tmp_path)])
    assert sorted(run.nccl_logs) == [0, 1, 2, 3]
    assert "via NET/Libfabric/0/GDRDMA" in run.nccl_logs[1]


class TestBadInput:
    def test_a_truncated_line_is_named_by_file_and_line(self, lab: Path) -> None:
        file = lab / "b-1" / "steps" / "rank-00001.jsonl"
        file.write_text(file.read_text()[:-30])
        assert refusal(lab).startswith(f"{file}:22: truncated or damaged step line (")

    def test_a_missing_step_file_is_named(self, lab: Path) -> None:
        file = lab / "b-1" / "steps" / "rank-00001.jsonl"
        file.unlink()
        assert refusal(lab) == (f"{file}: missing, though the record says that the run completed; collect it again")

    def test_a_missing_nccl_log_is_named(self, tmp_path: Path) -> None:
        place = write_run(efa_nodes(), tmp_path, "p4d")
        (place / "nccl" / "rank-00002.log").unlink()
        assert refusal(tmp_path).startswith(f"{place}/nccl/rank-00002.log: missing")

    def test_a_failed_run_may_lack_lines(self, tmp_path: Path) -> None:
        place = write_run(two_pods(status="failed"), tmp_path, "failed")
        (place / "steps" / "rank-00001.jsonl").unlink()
        (run,) = read_runs([str(tmp_path)])
        assert sorted(run.steps) == [0]

    def test_another_schema_is_named_with_the_one_that_can_be_read(self, lab: Path) -> None:
        file = lab / "a-1" / "record.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"record_schema": 2}))
        assert refusal(lab) == (f"{file}: record schema 2, this topolab reads schema 1; use the release that wrote it")

    def test_an_unknown_key_is_named(self, lab: Path) -> None:
        file = lab / "a-1" / "record.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"speed": 9}))
        assert refusal(lab).startswith(f"{file}: not a record of schema 1: speed: Extra inputs")

    @pytest.mark.parametrize("text", ["", '{"record_schema": 1', "[1]"])
    def test_a_truncated_record_is_named(self, lab: Path, text: str) -> None:
        file = lab / "a-1" / "record.json"
        file.write_text(text)
        assert refusal(lab).startswith(f"{file}: truncated or not a record (")

    def test_a_run_inside_a_runs_folder_is_refused(self, lab: Path) -> None:
        write_run(two_pods(), lab / "a-1", "c-1")
        assert refusal(lab) == f"{lab}/a-1: two runs in one folder, the other in {lab}/a-1/c-1; move one out"

    def test_steps_that_begin_again_are_two_runs_in_one_folder(self, lab: Path) -> None:
        file = lab / "a-1" / "steps" / "rank-00000.jsonl"
        file.write_text(file.read_text() * 2)
        assert refusal(lab) == (
            f"{file}:23: step 1 after step 22: two runs in one folder; give each run a folder of its own"
        )

    def test_a_rank_that_the_record_does_not_know_is_of_another_run(self, lab: Path) -> None:
        steps = lab / "a-1" / "steps"
        (steps / "rank-00007.jsonl").write_bytes((steps / "rank-00000.jsonl").read_bytes())
        assert "rank-00007.jsonl: two runs in one folder: its record has 2 ranks" in refusal(lab)

    def test_one_run_id_in_two_places_is_refused_and_both_are_named(self, lab: Path, tmp_path: Path) -> None:
        write_run(one_pod(), tmp_path / "copy", "a-1")
        sentence = refusal(lab, tmp_path / "copy")
        assert sentence.startswith("run id a-1 stands in ")
        assert str(lab / "a-1") in sentence
        assert str(tmp_path / "copy" / "a-1") in sentence

    def test_an_empty_folder_holds_no_record(self, tmp_path: Path) -> None:
        assert refusal(tmp_path) == f"{tmp_path}: no record found (no record.json); nothing is there"

    def test_lines_without_a_record_tell_that_the_run_did_not_publish(self, lab: Path) -> None:
        (lab / "a-1" / "record.json").unlink()
        sentence = refusal(lab / "a-1")
        assert sentence.endswith("stands there without one, so that run did not finish publishing")

    def test_a_place_that_cannot_be_read_is_named(self) -> None:
        assert refusal("nosuch://bucket/x").startswith("nosuch://bucket/x: can't be read (")
