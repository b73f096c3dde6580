"""RULEs of Kubeflow Trainer's installation."""

import pytest

from tests.pulumi_engine import registered


@pytest.mark.parametrize("name", ["dev", "local"])
def test_trainer_brings_its_crds_and_jobset_and_none_of_its_own_runtimes(name):
    release = registered(name).one("Release", "kubeflow-trainer").inputs
    assert release["chart"] == "oci://ghcr.io/kubeflow/charts/kubeflow-trainer"
    assert release["values"] == {
        "crds": {"enabled": True},
        "jobset": {"install": True},
        "runtimes": {"defaultEnabled": False},
    }
    assert release["createNamespace"] is True


@pytest.mark.parametrize("name", ["dev", "local"])
def test_every_job_goes_before_the_release_that_would_delete_its_kind(name):
    graph = registered(name)
    release = graph.one("Release", "kubeflow-trainer")
    assert graph.outlives(release, graph.one("ClusterTrainingRuntime"))
    assert graph.outlives(release, graph.one("TrainJob"))
