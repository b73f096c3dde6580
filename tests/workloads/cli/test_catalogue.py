"""`topo catalogue`."""

import json

from workloads.catalogue.machines import NAMED_MACHINES
from workloads.catalogue.models import MODELS
from workloads.catalogue.topologies import NAMED_TOPOLOGIES
from workloads.catalogue.versions import CHARTS, GPU_AMI_ALIAS, KUBERNETES, LUSTRE_SERVER, SEED_IMAGE, STOCK_IMAGE


def test_json_lists_everything_that_can_be_named(topo):
    listed = json.loads(topo("catalogue", "--json").out)
    assert list(listed) == ["topologies", "machines", "models"]
    assert [entry["name"] for entry in listed["topologies"]] == [row.name for row in NAMED_TOPOLOGIES]
    assert [entry["name"] for entry in listed["machines"]] == [machine.name for machine in NAMED_MACHINES]
    assert [entry["name"] for entry in listed["models"]] == [model.name for model in MODELS]


def test_a_topologys_price_is_that_of_all_its_nodes(topo):
    listed = json.loads(topo("catalogue", "--json").out)
    price = {entry["name"]: entry["usd_per_hour"] for entry in listed["topologies"]}
    assert price["g6e12xl-4x4-efa1"] == round(4 * 10.49264, 2)
    assert price["p4d24xl-4x1-efa1"] == round(21.957642, 2)
    assert price["cpu-2x1-tcp"] is None


def test_the_table_shows_the_same_names(topo):
    called = topo("catalogue")
    assert called.code == 0
    first_words = {line.split()[0] for line in called.out.splitlines() if line}
    assert first_words >= {row.name for row in NAMED_TOPOLOGIES} | {model.name for model in MODELS}


def test_lines_of_a_table_in_a_pipe_end_without_blanks_and_without_colours(topo):
    out = topo("catalogue").out
    assert all(line == line.rstrip() for line in out.splitlines())
    assert "\x1b" not in out


def test_versions_are_all_of_the_list_and_each_says_where_it_has_run(topo):
    listed = json.loads(topo("catalogue", "--versions", "--json").out)["versions"]
    pinned = {KUBERNETES, GPU_AMI_ALIAS, STOCK_IMAGE, SEED_IMAGE, LUSTRE_SERVER, *(chart.version for chart in CHARTS)}
    assert pinned <= {entry["version"] for entry in listed}
    assert all(entry["tried"] for entry in listed)
    assert "1.14.1" in topo("catalogue", "--versions").out
