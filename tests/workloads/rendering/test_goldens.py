"""Each named topology renders as its golden says; tests/goldens tells what a golden is."""

import pytest
import yaml

from tests.goldens import FOLDER, NAMES, golden
from tests.plan_factory import bindings_of, planned
from workloads.rendering.manifests import documents
from workloads.rendering.yaml_text import to_yaml


@pytest.mark.parametrize("topology", NAMES)
def test_each_named_topology_renders_as_its_golden_says(topology):
    written = (FOLDER / f"{topology}.yaml").read_text()
    assert golden(topology) == written, "`make goldens` rewrites it; read the diff before you commit it"


def test_there_is_no_golden_without_a_topology():
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(NAMES)


def test_a_golden_read_back_is_what_was_rendered():
    plan = planned("p4d24xl-2x8-efa4-hostnet", platform={"storage": {"fsx": "scratch"}})
    rendered = documents(plan, bindings_of(plan))
    assert list(yaml.safe_load_all(to_yaml(rendered))) == rendered


def test_texts_of_several_lines_stand_as_blocks_and_equal_values_are_repeated():
    shared = {"memory": "1Gi"}
    text = to_yaml([{"text": "one\ntwo\n", "requests": shared, "limits": shared, "flag": "true"}])
    assert text == ("---\ntext: |\n  one\n  two\nrequests:\n  memory: 1Gi\nlimits:\n  memory: 1Gi\nflag: 'true'\n")


def test_rendering_twice_gives_the_same_text():
    assert golden("g6e12xl-4x4-efa1") == golden("g6e12xl-4x4-efa1")
