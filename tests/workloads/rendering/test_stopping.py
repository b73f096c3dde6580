"""An interrupted job ends its step and saves: who waits how long for whom."""

import pytest

from tests.plan_factory import planned, rendered
from workloads.catalogue.topologies import NAMED_TOPOLOGIES, parse_topology
from workloads.rendering.stopping import SHUTDOWN_VARIABLE, grace_s

EC2_NAMES = [row.name for row in NAMED_TOPOLOGIES if not parse_topology(row.name).machine.is_local]
SPOT = {"capacity": {"mode": "spot"}}


def pod_spec(plan):
    job = rendered(plan)["ClusterTrainingRuntime"]["spec"]["template"]["spec"]["replicatedJobs"][0]
    return job["template"]["spec"]["template"]["spec"]


def drain_limit(plan):
    return rendered(plan)["NodePool"]["spec"]["template"]["spec"]["terminationGracePeriod"]


def test_on_spot_the_drain_begins_with_the_notice():
    # Karpenter deletes a do-not-disrupt pod once what is left of the node's time is the pod's own grace.
    plan = planned("g6e12xl-4x4-tcp", platform=SPOT)
    assert drain_limit(plan) == f"{pod_spec(plan)['terminationGracePeriodSeconds']}s" == "120s"


@pytest.mark.parametrize("name", EC2_NAMES)
def test_on_demand_an_interrupted_job_ends_its_step_and_saves_within_its_grace(name):
    plan = planned(name)
    grace = pod_spec(plan)["terminationGracePeriodSeconds"]
    # A signal that comes after a step's reduction waits for the next one; then a minute for the record.
    assert grace == 900 or grace >= max(120, 2 * plan.prediction.step.step_s.high + 60)
    assert grace <= 900
    assert drain_limit(plan) == "30m"


def test_a_slow_step_and_a_checkpoint_lengthen_the_grace():
    fast, slow, saving = (
        grace_s(planned(name, platform={"storage": {"fsx": "scratch"}}, restarts=restarts))
        for name, restarts in (
            ("p4d24xl-1x8-efa4", 0), ("p4d24xl-4x1-efa1", 0), ("p4d24xl-1x8-efa4", 1),
        )
    )  # fmt: skip
    assert (fast, slow > fast, saving > fast) == (120, True, True)


@pytest.mark.parametrize("platform", [{}, SPOT])
def test_torchrun_ends_before_the_kubelet_kills_it_and_not_after_its_own_30_s(platform):
    plan = planned("p4d24xl-4x1-tcp", platform=platform)
    trainer = rendered(plan)["TrainJob"]["spec"]["trainer"]
    (waits,) = [int(v["value"]) for v in trainer["env"] if v["name"] == SHUTDOWN_VARIABLE]
    grace = pod_spec(plan)["terminationGracePeriodSeconds"]
    assert 30 < waits < grace
    # The option would stop a torchrun that is older than it, such as that of the seeds' image.
    assert not any("shutdown" in word for word in trainer["args"])
