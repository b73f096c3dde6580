"""`topo render`."""

import pytest
import yaml

from trainer.config import read_config
from workloads.cli.arms import planned


@pytest.mark.parametrize("name", ["g6e12xl-4x4-efa1-pg", "p4d24xl-4x1-tcp", "cpu-2x1-tcp-50mbit"])
def test_an_arm_renders_to_documents_that_end_with_its_trainjob(name, topo):
    called = topo("render", name)
    assert (called.code, called.err) == (0, "")
    documents = list(yaml.safe_load_all(called.out))
    assert documents[0]["kind"] == "Namespace"
    assert documents[-1]["kind"] == "TrainJob"
    assert documents[-1]["metadata"]["name"] == f"{name}-1"


def test_ids_that_only_a_made_resource_knows_stand_as_placeholders(topo):
    out = topo("render", "g6e8xl-2x1-efa1").out
    assert "${subnet}" in out
    assert "${records}" in out


def test_one_file_a_document_holds_what_stdout_would_show(topo, tmp_path):
    shown = list(yaml.safe_load_all(topo("render", "g6e8xl-2x1-efa1").out))
    called = topo("render", "g6e8xl-2x1-efa1", "--out", str(tmp_path / "deep" / "down"))
    files = sorted((tmp_path / "deep" / "down").iterdir())
    assert called.out.split() == [str(file) for file in files]
    assert [yaml.safe_load(file.read_text()) for file in files] == shown


def test_the_trainers_one_file_can_be_had_alone(topo, tmp_path):
    called = topo("render", "g6e8xl-2x1-efa1", "--config")
    file = tmp_path / "config.json"
    file.write_text(called.out)
    assert read_config(file) == planned("g6e8xl-2x1-efa1").config
    both = topo("render", "cpu-1x2-local", "--config", "--out", str(tmp_path))
    assert (both.code, "leave --out away" in both.err) == (2, True)


def test_a_folder_that_cannot_be_written_is_named(topo, tmp_path):
    (tmp_path / "file").write_text("")
    called = topo("render", "cpu-1x2-local", "--out", str(tmp_path / "file" / "in"))
    assert called.code == 2
    assert str(tmp_path / "file") in called.err


def test_a_stack_file_that_is_gone_is_refused(topo):
    called = topo("render", "Pulumi.gone.yaml")
    assert called.code == 2
    assert "Pulumi.gone.yaml: can't be read" in called.err
