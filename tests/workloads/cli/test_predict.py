"""`topo predict`."""

import json

from workloads.catalogue.topologies import NAMED_TOPOLOGIES


def test_every_named_arm_is_predicted_in_one_table(topo):
    names = [row.name for row in NAMED_TOPOLOGIES]
    called = topo("predict", *names)
    assert (called.code, called.err) == (0, "")
    assert called.out.splitlines()[0].split() == ["predicted", *names]


def test_json_carries_every_figure_as_a_range_with_its_unit_in_the_name_and_its_source(topo):
    called = topo("predict", "g6e8xl-2x1-efa1", "--json")
    [prediction] = json.loads(called.out)["predictions"]
    assert prediction["topology"] == "g6e8xl-2x1-efa1"
    step = prediction["step"]["step_s"]
    assert step["low"] < step["expected"] < step["high"]
    assert set(prediction["step"]) >= {"compute_s", "communication_s", "host_copy_s", "optimizer_s"}
    assert prediction["memory"]["per_rank_gib"]["expected"] < prediction["memory"]["limit_gib"]
    assert prediction["cost"]["nodes"] == 2
    assert prediction["cost"]["run_usd"]["expected"] > 0
    assert all(prediction[part]["explained"] for part in ("memory", "traffic", "step", "cost"))


def test_the_slow_link_is_said_to_cost_time_and_the_pod_that_needs_none_sends_nothing(topo):
    called = topo("predict", "cpu-1x2-local", "cpu-2x1-tcp-1gbit", "cpu-2x1-tcp-50mbit", "--json")
    one_pod, fast, slow = json.loads(called.out)["predictions"]
    assert one_pod["traffic"]["pod_sent_bytes"] == 0
    assert fast["traffic"] == slow["traffic"]
    assert slow["step"]["step_s"]["expected"] > fast["step"]["step_s"]["expected"]


def test_what_is_not_known_is_said_and_never_guessed(topo):
    out = topo("predict", "cpu-2x1-tcp-50mbit").out
    assert "MFU                       n/a (peak rate unknown)" in out
    assert "price                     n/a (none known)" in out


def test_why_names_formula_and_source_of_each_figure(topo):
    out = topo("predict", "cpu-2x1-tcp-50mbit", "--why").out
    assert "figure  formula" in out
    assert "gloo" in out
    assert {line.split()[0] for line in out.splitlines() if line[:1].isalpha()} >= {"memory", "bytes", "step", "cost"}


def test_a_model_that_does_not_fit_is_refused_with_what_is_missing_and_what_to_do(topo):
    called = topo("predict", "p4d24xl-1x1-local", "--model", "llama-3-8b")
    assert called.code == 2
    assert "GiB more than" in called.err
    assert "use more pods or another recipe" in called.err
