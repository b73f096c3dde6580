"""`topo collect`."""

import json
import os
from pathlib import Path

import pytest
from fsspec.implementations.local import LocalFileSystem

from tests.record_factory import one_pod, two_pods, write_run
from workloads.cli.collect import records_uri


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    folder = tmp_path / "bucket"
    write_run(one_pod(), folder / "stack", "run-a")
    write_run(two_pods(), folder / "stack", "run-b")
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_run_arrives_byte_for_byte_under_the_names_it_had(topo, bucket, tmp_path):
    called = topo("collect", f"file://{bucket}", "--out", str(tmp_path / "here"))
    assert called.code == 0
    assert f"{tmp_path / 'here'}: 2 runs fetched, 0 were there already" in called.out
    assert files_of(tmp_path / "here") == files_of(bucket)


def test_collecting_again_fetches_only_what_is_new(topo, bucket, tmp_path):
    topo("collect", f"file://{bucket}", "--out", str(tmp_path / "here"))
    write_run(one_pod(), bucket / "stack", "run-c")
    called = topo("collect", f"file://{bucket}", "--out", str(tmp_path / "here"))
    assert "1 runs fetched, 2 were there already" in called.out
    assert files_of(tmp_path / "here") == files_of(bucket)


def test_the_uri_of_one_run_brings_that_run_in_a_folder_of_its_name(topo, bucket, tmp_path):
    topo("collect", f"file://{bucket}/stack/run-b", "--out", str(tmp_path / "here"))
    assert files_of(tmp_path / "here" / "run-b") == files_of(bucket / "stack" / "run-b")


def test_a_run_that_differs_is_refused_and_nothing_is_written(topo, bucket, tmp_path):
    topo("collect", f"file://{bucket}", "--out", str(tmp_path / "here"))
    log = tmp_path / "here" / "stack" / "run-a" / "record.json"
    log.write_text(log.read_text() + "\n")
    before = files_of(tmp_path / "here")
    write_run(one_pod(), bucket / "stack", "run-c")
    called = topo("collect", f"file://{bucket}", "--out", str(tmp_path / "here"))
    assert called.code == 2
    assert f"{log} differs from the one at the URI" in called.err
    assert files_of(tmp_path / "here") == before


def test_a_fetch_that_fails_half_way_leaves_no_partial_run(topo, bucket, tmp_path, monkeypatch):
    fetch, seen = LocalFileSystem.get_file, []

    def breaks(self, source, target, **options):
        seen.append(source)
        if len(seen) == 3:
            raise ConnectionResetError("the line dropped")
        fetch(self, source, target, **options)

    monkeypatch.setattr(LocalFileSystem, "get_file", breaks)
    called = topo("collect", f"file://{bucket}", "--out", str(tmp_path / "here"))
    assert called.code == 2
    assert "couldn't be fetched (ConnectionResetError: the line dropped)" in called.err
    assert files_of(tmp_path / "here") == {}
    assert list((tmp_path / "here").iterdir()) == []


def test_a_uri_without_a_finished_run_is_refused(topo, tmp_path):
    (tmp_path / "steps.jsonl").write_text("")
    called = topo("collect", f"file://{tmp_path}", "--out", str(tmp_path / "here"))
    assert called.code == 2
    assert "no finished run is there (1 other files)" in called.err


def test_an_unknown_protocol_is_refused_with_those_that_are_read(topo, tmp_path):
    called = topo("collect", "carrier-pigeon://coop", "--out", str(tmp_path / "here"))
    assert called.code == 2
    assert "give s3://bucket/prefix or file:///folder" in called.err


def fake_pulumi(folder: Path, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "pulumi").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "pulumi").chmod(0o755)


def test_a_stack_is_asked_where_its_records_are(topo, bucket, tmp_path, monkeypatch):
    outputs = json.dumps({"records": f"file://{bucket}"})
    fake_pulumi(tmp_path / "bin", f"""[ "$*" = "stack output --json --stack dev" ] && echo '{outputs}'""")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    called = topo("collect", "dev", "--out", str(tmp_path / "here"))
    assert called.code == 0
    assert "2 runs fetched" in called.out


def test_a_stack_that_does_not_answer_is_named_with_pulumis_reason(tmp_path, monkeypatch):
    fake_pulumi(tmp_path / "bin", "echo \"error: no stack named 'dev' found\" >&2; exit 255")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ValueError, match=r"dev: .*no stack named 'dev' found"):
        records_uri("dev")


def test_a_stack_without_records_is_told_to_be_brought_up(tmp_path, monkeypatch):
    fake_pulumi(tmp_path / "bin", "echo '{}'")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ValueError, match="dev: the stack doesn't say where its records are; run `pulumi up`"):
        records_uri("dev")


def test_a_machine_without_pulumi_is_told_to_give_the_uri(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="pulumi command line isn't installed"):
        records_uri("dev")
