"""Experiment files: built-in by name, others by path, each fault one sentence."""

import pytest

from workloads.catalogue.machines import CPU, find_machine
from workloads.lab.experiments import built_in_names, load_experiment

H200X4 = find_machine("h200x4")


def test_the_default_follows_from_the_machine():
    assert H200X4 is not None
    assert load_experiment(None, CPU).experiment.name == "default-cpu"
    assert load_experiment(None, H200X4).experiment.name == "default-gpu"


def test_the_default_compares_three_links_or_more_with_two_repeats_and_equal_work():
    for machine in (CPU, H200X4):
        assert machine is not None
        planned = load_experiment(None, machine)
        assert len(planned.plans) >= 3
        assert planned.experiment.repeats == 2
        assert len({p.config.token_slots_per_step for p in planned.plans}) == 1
        assert len({p.config.recipe.zero for p in planned.plans}) == 1


def test_a_file_is_read_by_its_path(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "name: mine\nvary: topology\nbase: {topology: cpu-1x2-local, run: {model: tiny, "
        "globalBatchTokens: 2048, sequenceLength: 128}}\narms: [{name: only}]\n"
    )
    assert [p.topology.name for p in load_experiment(str(path), CPU).plans] == ["cpu-1x2-local"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("name: [", "not YAML"), ("- 1", "it has name, vary, base, arms and repeats"), ("name: x", "is missing")],
)
def test_a_broken_file_is_refused(tmp_path, text, sentence):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"mine\.yaml") as error:
        load_experiment(str(path), CPU)
    assert sentence in str(error.value)


def test_an_unknown_name_offers_the_built_in_ones():
    with pytest.raises(ValueError, match=", ".join(built_in_names())):
        load_experiment("no-such", CPU)


def test_an_ec2_topology_is_for_pulumi_up(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nvary: topology\nbase: {topology: g6e8xl-2x1-efa1}\narms: [{name: only}]\n")
    with pytest.raises(ValueError, match="runs on EC2, and the lab runs on this machine; write cpu-"):
        load_experiment(str(path), CPU)
