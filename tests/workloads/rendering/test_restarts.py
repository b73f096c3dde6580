"""Who starts a run over, how often, and what the next start finds."""

import pytest

from tests.plan_factory import planned, rendered
from workloads.rendering.pods import pods


def variables(plan):
    environment = rendered(plan)["TrainJob"]["spec"]["trainer"]["env"]
    return {v["name"]: v.get("value", v.get("valueFrom")) for v in environment}


@pytest.mark.parametrize(
    ("topology", "platform", "folder"),
    [("g6e12xl-4x4-efa1", {"storage": {"fsx": "scratch"}}, "/fsx"), ("cpu-2x1-tcp", {}, "/records")],
)
def test_a_run_that_saves_is_started_over_as_a_gang_and_knows_how_often(topology, platform, folder):
    plan = planned(topology, platform=platform, checkpointEverySteps=5)
    runtime = rendered(plan)["ClusterTrainingRuntime"]["spec"]["template"]["spec"]
    assert runtime["failurePolicy"] == {"maxRestarts": 3}
    job = runtime["replicatedJobs"][0]["template"]["spec"]
    assert (job["backoffLimit"], job["template"]["spec"]["restartPolicy"]) == (0, "Never")
    assert variables(plan)["TOPOLAB_CHECKPOINTS"] == f"{folder}/checkpoints"
    label = "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"
    assert variables(plan)["TOPOLAB_RESTARTS"] == {"fieldRef": {"fieldPath": label}}
    assert plan.config.resume


def test_the_user_s_number_of_restarts_wins():
    none, two = planned("cpu-2x1-tcp", checkpointEverySteps=5, restarts=0), planned("cpu-2x1-tcp", restarts=2)
    assert (none.restarts, none.config.resume, none.saves) == (0, False, True)
    assert (two.restarts, two.config.resume, two.config.checkpoint_every_steps) == (2, True, None)


def test_a_run_that_saves_nothing_hears_of_no_restart():
    plan = planned("cpu-2x1-tcp")
    assert (plan.restarts, plan.saves) == (0, False)
    assert not {"TOPOLAB_CHECKPOINTS", "TOPOLAB_RESTARTS"} & variables(plan).keys()


def test_the_pods_of_a_later_start_bear_its_number_as_jobset_writes_it():
    by_kind = rendered(planned("cpu-2x1-tcp", restarts=2))
    first, third = (pods(by_kind["TrainJob"], by_kind["ClusterTrainingRuntime"], n) for n in (0, 2))
    for made, number in ((first, "0"), (third, "2")):
        assert {pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] for pod in made} == {number}
