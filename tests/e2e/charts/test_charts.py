"""The charts on disk: which are there, and that a stand-in says that it is one."""

import json

import pytest
import yaml

from tests.e2e.charts.folder import HOME, STAND_INS, assemble_charts
from workloads.catalogue.instances import INSTANCE_TYPES
from workloads.catalogue.versions import CHARTS


@pytest.mark.parametrize("name", [*STAND_INS, "lws"])
def test_a_stand_in_says_that_it_is_one(name):
    description = yaml.safe_load((HOME / name / "Chart.yaml").read_text())
    assert description["annotations"] == {"topolab.dev/stand-in": "true"}
    assert "stand-in" in description["description"].lower()


@pytest.mark.parametrize("name", STAND_INS)
def test_a_stand_in_has_the_catalogue_s_version_and_refuses_values_that_it_would_ignore(name):
    (chart,) = [chart for chart in CHARTS if chart.name == name]
    assert yaml.safe_load((HOME / name / "Chart.yaml").read_text())["version"] == chart.version
    schema = json.loads((HOME / name / "values.schema.json").read_text())
    assert schema["additionalProperties"] is False
    assert schema["properties"].keys() == yaml.safe_load((HOME / name / "values.yaml").read_text()).keys()
    assert "stand-in" in (HOME / name / "templates/NOTES.txt").read_text()


def test_the_efa_plugin_goes_to_the_catalogue_s_instance_types_with_efa():
    template = (HOME / "aws-efa-k8s-device-plugin/templates/daemonset.yaml").read_text()
    (line,) = [line for line in template.splitlines() if "values: [" in line]
    assert yaml.safe_load(line) == {"values": [machine.name for machine in INSTANCE_TYPES if machine.efa_devices]}


def test_every_chart_of_the_catalogue_lies_there_by_its_name(tmp_path):
    modules = tmp_path / "modules"
    for path in (
        "karpenter-provider-aws/charts/karpenter/Chart.yaml",
        "karpenter-provider-aws/charts/karpenter-crd/Chart.yaml",
        "karpenter-provider-aws/pkg/apis/crds/nodepools.yaml",
        "v2/charts/kubeflow-trainer/Chart.yaml",
        "jobset/charts/jobset/Chart.yaml",
    ):
        (modules / path).parent.mkdir(parents=True)
        (modules / path).write_text("name: x\n")
        (modules / path).chmod(0o444)
    folder = assemble_charts(tmp_path / "charts", lambda module: modules / module.rsplit("/", 1)[-1])
    assert {chart.name.rsplit("/", 1)[-1] for chart in CHARTS} == {path.name for path in folder.iterdir()}
    assert (folder / "karpenter-crd/templates/nodepools.yaml").read_text() == "name: x\n"
    assert {path.name for path in (folder / "kubeflow-trainer/charts").iterdir()} == {"jobset", "lws"}
