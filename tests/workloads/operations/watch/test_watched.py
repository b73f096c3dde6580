"""The phase that a run is in, how far it is, and what its nodes have cost."""

import pytest

from tests.workloads.operations.watch.scene import JOB, READY, claim, pod, run, train_job
from workloads.operations.watch.nodes import nodes
from workloads.operations.watch.progress import progress
from workloads.operations.watch.watched import first_pod, watched

RUNNING = [pod(0, "Running", "n0"), pod(1, "Running", "n1")]
LINES = ["NCCL INFO x", "step 1 of 30: 9 s", "[default0]:step 2 of 30: 0.5 s", "step 3 of 30: 1.5 s", "a warning"]


def phase(log=(), **objects):
    return watched(JOB, run(**{"job": train_job(), **objects}), log).phase


def test_a_run_goes_from_capacity_over_its_start_to_its_steps():
    assert phase() == "waiting for pods"
    assert phase(pods=[pod(0), pod(1)]) == "capacity: 2 of 2 pods have no node"
    some = [claim("Launched"), claim()]
    assert phase(pods=[pod(0), pod(1)], claims=some) == ("capacity: 2 nodes asked for, 1 launched, 0 joined, 0 ready")
    assert phase(pods=[pod(0, node="n0"), pod(1, "Running", "n1")]) == (
        "start: 1 of 2 pods fetch their image or prepare"
    )
    assert phase(pods=RUNNING) == "start: links are probed, model and data are read"
    assert phase(pods=RUNNING, log=LINES) == "training"


@pytest.mark.parametrize(
    ("condition", "end"), [("Complete", "complete"), ("Failed", "failed"), ("Suspended", "suspended")]
)
def test_an_end_is_told_before_anything_else(condition, end):
    seen = watched(JOB, run(job=train_job(condition), pods=[pod(0)]), [])
    assert (seen.end, seen.phase) == (end, end)


def test_a_job_that_isnt_there_is_an_end_too():
    seen = watched(JOB, run(), [])
    assert (seen.end, seen.phase) == ("absent", "there is no such TrainJob")


def test_why_pods_wait_is_told_with_the_phase():
    seen = watched(JOB, run(job=train_job(), pods=[]), [])
    assert "has no pods yet" in seen.findings[0].sentence


def test_progress_is_the_last_steps_line_and_the_mean_of_the_recent_ones():
    done = progress(train_job(), LINES[1:3])
    assert done is not None
    assert (done.words, done.share) == ("step 2 of 30", 2 / 30)
    assert (done.step_s, done.left_s) == (4.75, 28 * 4.75)
    many = [f"step {n} of 100: {1.0 if n > 10 else 50.0} s" for n in range(1, 21)]
    recent = progress(train_job(), many)
    assert recent is not None
    assert recent.step_s == 1.0


def test_without_lines_trainers_own_status_tells_and_without_both_nothing_does():
    status = {"progressPercentage": 40, "estimatedRemainingSeconds": 90}
    done = progress(train_job(trainerStatus=status), ["nothing"])
    assert done is not None
    assert (done.words, done.share, done.step_s, done.left_s) == ("40%", 0.4, None, 90.0)
    partly = progress(train_job(trainerStatus={"progressPercentage": 40}), [])
    assert partly is not None
    assert partly.left_s is None
    assert progress(train_job(), ["step x of y"]) is None
    assert progress(None, []) is None


def test_dollars_run_from_the_moment_that_ec2_gave_a_node():
    found = nodes(run(pods=RUNNING, claims=[claim(*READY), claim("Launched"), claim()]))
    assert (found.asked, found.ready) == (3, 1)
    assert found.usd_per_hour == pytest.approx(2 * 4.52856)
    assert found.spent_usd == pytest.approx(2 * 4.52856 / 2)


def test_a_reservation_costs_as_on_demand_does():
    found = nodes(run(pods=RUNNING, claims=[claim(*READY, **{"karpenter.sh/capacity-type": "reserved"})]))
    assert found.usd_per_hour == pytest.approx(4.52856)


@pytest.mark.parametrize(
    "labels",
    [
        {"karpenter.sh/capacity-type": "spot"},
        {"karpenter.k8s.aws/capacity-reservation-type": "capacity-block"},
        {"topology.kubernetes.io/region": "eu-west-1"},
        {"node.kubernetes.io/instance-type": "x9.large"},
    ],
)
def test_a_price_that_isnt_known_is_no_guess(labels):
    found = nodes(run(pods=RUNNING, claims=[claim(*READY), claim(*READY, **labels)]))
    assert (found.usd_per_hour, found.spent_usd) == (None, None)


def test_a_claim_without_its_type_yet_has_no_price():
    bare = claim("Launched")
    del bare["metadata"]["labels"]["node.kubernetes.io/instance-type"]
    assert nodes(run(pods=RUNNING, claims=[bare])).spent_usd is None


def test_nodes_of_another_pool_are_somebody_elses():
    other = claim(*READY, **{"karpenter.sh/nodepool": "gpu-p4d24xl"})
    assert nodes(run(pods=RUNNING, claims=[other])).asked == 0


def test_rank_0_speaks_once_its_pod_runs():
    assert first_pod(run(pods=[pod(1, "Running", "n"), pod(0)])) is None
    assert first_pod(run(pods=RUNNING)) == f"{JOB}-node-0-0-abcde"
