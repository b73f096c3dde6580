"""Values of ours against the charts that are on disk: Helm ignores a misspelt one in silence."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from tests.e2e.charts.folder import assemble_charts
from tests.e2e.tools import module_path
from tests.pulumi_engine import registered

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def charts(tmp_path_factory):
    return assemble_charts(tmp_path_factory.mktemp("charts"), module_path)


@pytest.mark.parametrize("release", ["karpenter", "karpenter-crd", "kubeflow-trainer"])
def test_the_chart_has_every_value_that_we_set(charts, release):
    path = charts / release / "values.yaml"
    known = yaml.safe_load(path.read_text()) if path.exists() else {}
    ours = registered("dev").one("Release", release).inputs["values"]
    assert list(strangers(known or {}, ours)) == []


def test_a_misspelt_value_is_named(charts):
    known = yaml.safe_load((charts / "karpenter/values.yaml").read_text())
    assert list(strangers(known, {"settings": {"clusterNam": "x"}})) == ["settings.clusterNam"]


def strangers(known: Mapping[str, Any], ours: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Paths of ours that the chart doesn't have; what it leaves empty may hold anything."""
    for key, value in ours.items():
        here = f"{path}.{key}".lstrip(".")
        if key not in known:
            yield here
        elif isinstance(value, Mapping) and isinstance(known[key], Mapping) and known[key]:
            yield from strangers(known[key], value, here)
