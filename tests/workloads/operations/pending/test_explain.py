"""Why a pod waits, from objects that the real controller left."""

from datetime import timedelta
from typing import Any

import pytest

from tests.workloads.operations.pending.seen import JOB, NOW, claim_of, seen, set_condition
from workloads.operations.pending.explain import Answer, explain
from workloads.operations.pending.observed import Observed, reporter


def only(answer: Answer) -> tuple[str, str]:
    (finding,) = answer.findings
    return finding.sentence, finding.remedy


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("taint", "the pod doesn't tolerate the taint nvidia.com/gpu=present:NoSchedule of NodePool gpu-g6e12xl-taint"),
        ("limit", "NodePool gpu-g6e12xl-limit may not grow: its limits are nodes: 4, nvidia.com/gpu: 0"),
        ("nodes", "NodePool gpu-g6e12xl-nodes may not grow: its limits are nodes: 0, nvidia.com/gpu: 16"),
        ("sel", "the pod wants node.kubernetes.io/instance-type g6e.8xlarge, and NodePool gpu-g6e12xl-sel has "
                "g6e.12xlarge"),
        ("efa", "no instance type of NodePool gpu-g6e12xl-efa holds a pod that asks for "
                '{"cpu":"43028m","memory":"296Gi","nvidia.com/gpu":"4","pods":"1","vpc.amazonaws.com/efa":"2"}'),
        ("type", "no instance type fulfils what NodePool gpu-g6e12xl-type requires: "
                 "node.kubernetes.io/instance-type In g6e.13xlarge; topology.kubernetes.io/zone In us-east-1b; "
                 "karpenter.sh/capacity-type In on-demand; kubernetes.io/arch In amd64"),
        ("zone", "no instance type fulfils what NodePool gpu-g6e12xl-zone requires: "
                 "node.kubernetes.io/instance-type In g6e.12xlarge; topology.kubernetes.io/zone In us-east-1a; "
                 "karpenter.sh/capacity-type In on-demand; kubernetes.io/arch In amd64"),
        ("subnet", "EC2NodeClass gpu-g6e12xl-subnet finds no subnet subnet-0123456789abcdef0"),
        ("sg", "EC2NodeClass gpu-g6e12xl-sg finds no security group sg-0123456789abcdef0"),
        ("pg", "EC2NodeClass gpu-g6e12xl-pg finds no placement group nope"),
        ("class", "NodePool gpu-g6e12xl-class launches nodes by EC2NodeClass nope, which isn't there"),
        ("nopool", "the pod goes to nodes of NodePool gone alone, and there is no such pool"),
        ("coming", "NodeClaim gpu-g6e12xl-coming-x2cvr was launched 11 s ago and boots"),
    ],
)  # fmt: skip
def test_what_the_controller_said_is_one_sentence(fault, sentence):
    answer = explain(JOB, seen(fault))
    assert only(answer)[0] == sentence
    assert answer.is_explained
    assert answer.phases == {"Pending": 1}


def test_a_running_pod_needs_no_reason():
    answer = explain(JOB, seen("oktwo"))
    assert (answer.findings, answer.phases, answer.is_explained) == ((), {"Running": 1}, True)


def test_answers_of_other_pools_are_not_this_pods_reason():
    def alone(objects):
        objects["nodePools"] = [one for one in objects["nodePools"] if one["metadata"]["name"] == "gpu-g6e12xl-zone"]
        objects["events"] = [one for one in objects["events"] if one.get("reason") != "NoCompatibleInstanceTypes"]

    # Karpenter's event speaks of four other pools, two of them at their limits.
    answer = explain(JOB, seen("zone", alone))
    assert only(answer)[0] == "the cluster names no reason"
    assert not answer.is_explained


def test_pods_of_one_reason_are_told_together():
    def twice(objects):
        objects["pods"].append({**objects["pods"][0], "metadata": {**objects["pods"][0]["metadata"], "name": "second"}})

    (finding,) = explain(JOB, seen("subnet", twice)).findings
    assert finding.pods == (f"{JOB}-node-0-0-6e023-subnet", "second")


def test_the_newest_word_counts():
    def then_nominated(objects):
        words = {"reason": "Nominated", "message": "Pod should schedule on: nodeclaim/gpu-g6e12xl-coming-x2cvr"}
        (old,) = [
            event
            for event in objects["events"]
            if event["involvedObject"]["name"].endswith("-limit") and reporter(event) == "karpenter"
        ]
        objects["events"].append({**old, **words, "lastTimestamp": "2026-11-21T15:37:59Z"})

    assert "was launched" in only(explain(JOB, seen("limit", then_nominated)))[0]


@pytest.mark.parametrize(
    ("reason", "message", "sentence", "remedy"),
    [
        ("VCPULimitExceeded", "An instance was requested that would exceed your VCPU quota",
         "EC2 launches no node for NodeClaim {}: the account's vCPU quota of EC2 is used up", "Service Quotas"),
        ("Unauthorized", "no identity-based policy allows it",
         "EC2 launches no node for NodeClaim {}: Karpenter's role may not launch instances", "karpenter_policies"),
        ("LaunchFailed", "Instance launch failed",
         "EC2 launches no node for NodeClaim {}: LaunchFailed: Instance launch failed", "kubectl describe nodeclaim"),
        ("AwaitingReconciliation", "object is awaiting reconciliation", "EC2 is asked for a node (NodeClaim {})",
         "wait"),
    ],
)  # fmt: skip
def test_a_claim_that_ec2_refuses_is_told_with_ec2s_reason(reason, message, sentence, remedy):
    # Upstream's kwok form launches everything; the words are those of pkg/errors ToReasonMessage.
    def refused(objects):
        set_condition(claim_of(objects, "coming"), "Launched", "Unknown", reason, message)

    told = only(explain(JOB, seen("coming", refused)))
    assert told[0] == sentence.format("gpu-g6e12xl-coming-x2cvr")
    assert remedy in told[1]


RESERVATION = "cr-0123456789abcdef0"


@pytest.mark.parametrize(
    ("found", "looked", "told_of_it"),
    [([], "True", True), ([], "Unknown", False), ([{"id": RESERVATION}], "True", False)],
)
def test_a_class_that_found_none_of_its_reservations_is_told(found, looked, told_of_it):
    # Karpenter calls such a class ready (pkg/controllers/nodeclass/capacityreservation.go).
    def reserved(objects):
        (one,) = [one for one in objects["nodeClasses"] if one["metadata"]["name"] == "gpu-g6e12xl-zone"]
        one["spec"]["capacityReservationSelectorTerms"] = [{"id": RESERVATION}]
        one["status"]["capacityReservations"] = found
        set_condition(one, "CapacityReservationsReady", looked, "r")

    sentence, remedy = only(explain(JOB, seen("zone", reserved)))
    expected = f"EC2NodeClass gpu-g6e12xl-zone finds no active reservation {RESERVATION}"
    assert (sentence == expected) == told_of_it
    assert ("--reserve" in remedy) == told_of_it


def test_a_claim_that_was_given_up_for_want_of_capacity():
    def given_up(objects):
        objects["nodeClaims"].clear()
        objects["events"].append(
            {
                "reason": "InsufficientCapacityError",
                "message": "NodeClaim gpu-g6e12xl-coming-x2cvr event: all requested instance types were unavailable",
                "involvedObject": {"kind": "NodeClaim", "name": "gpu-g6e12xl-coming-x2cvr"},
                "lastTimestamp": "2026-11-21T15:37:55Z",
                "reportingComponent": "karpenter",
            }
        )

    sentence, remedy = only(explain(JOB, seen("coming", given_up)))
    assert sentence.startswith("EC2 has no capacity for NodeClaim gpu-g6e12xl-coming-x2cvr (")
    assert "`topo preflight STACK --reserve`" in remedy


def test_a_claim_that_is_gone_without_a_word():
    told = only(explain(JOB, seen("coming", lambda objects: objects["nodeClaims"].clear())))
    assert told[0] == "its node is gone (Pod should schedule on: nodeclaim/gpu-g6e12xl-coming-x2cvr)"


def test_an_instance_that_never_joins():
    sentence, remedy = only(explain(JOB, seen("coming", now=NOW + timedelta(minutes=11))))
    assert sentence == "the instance of NodeClaim gpu-g6e12xl-coming-x2cvr runs for 671 s and hasn't joined the cluster"
    assert "EC2_LINUX" in remedy


def test_a_node_without_its_device_plugin():
    def registered(objects):
        claim = claim_of(objects, "coming")
        set_condition(claim, "Registered", "True", "Registered")
        message = 'Resource "vpc.amazonaws.com/efa" was requested but not registered'
        set_condition(claim, "Initialized", "Unknown", "ResourceNotRegistered", message)

    sentence, remedy = only(explain(JOB, seen("coming", registered)))
    assert 'Resource "vpc.amazonaws.com/efa" was requested but not registered' in sentence
    assert "device plugins" in remedy


def test_a_ready_node_is_the_schedulers_turn():
    def ready(objects):
        for kind in ("Registered", "Initialized"):
            set_condition(claim_of(objects, "coming"), kind, "True", kind)

    assert only(explain(JOB, seen("coming", ready)))[0] == "the node of NodeClaim gpu-g6e12xl-coming-x2cvr is ready"


def test_karpenters_silence_is_told_once_it_is_too_long():
    def silent(objects):
        objects["events"] = [event for event in objects["events"] if reporter(event) != "karpenter"]

    sentence, remedy = only(explain(JOB, seen("coming", silent, NOW + timedelta(minutes=2))))
    assert sentence == "Karpenter has said nothing about the pod for 135 s"
    assert "kube-system get pods" in remedy
    assert only(explain(JOB, seen("coming", silent)))[0] == "Karpenter hasn't looked at the pod yet"


def test_an_unknown_condition_of_a_node_class_is_told_in_its_own_words():
    def unauthorised(objects):
        (node_class,) = [one for one in objects["nodeClasses"] if one["metadata"]["name"] == "gpu-g6e12xl-coming"]
        words = "Controller isn't authorized to call ec2:CreateFleet"
        set_condition(node_class, "ValidationSucceeded", "False", "CreateFleetAuthCheckFailed", words)

    assert only(explain(JOB, seen("coming", unauthorised)))[0] == (
        "EC2NodeClass gpu-g6e12xl-coming: ValidationSucceeded is False, CreateFleetAuthCheckFailed: Controller isn't "
        "authorized to call ec2:CreateFleet"
    )


def test_an_invalid_pool_is_told_with_what_is_wrong():
    def invalid(objects):
        (pool,) = [one for one in objects["nodePools"] if one["metadata"]["name"] == "gpu-g6e12xl-coming"]
        set_condition(pool, "ValidationSucceeded", "False", "NodePoolValidationFailed", "invalid taint key")

    assert only(explain(JOB, seen("coming", invalid)))[0] == "NodePool gpu-g6e12xl-coming is invalid: invalid taint key"


def on_node(objects, **status) -> None:
    objects["pods"][0]["spec"]["nodeName"] = "node-1"
    objects["pods"][0]["status"] = {"phase": "Pending", **status}


def test_an_image_that_cannot_be_pulled():
    def pulling(objects):
        waiting = {"reason": "ErrImagePull", "message": "not found"}
        on_node(objects, containerStatuses=[{"name": "node", "state": {"waiting": waiting}}])

    sentence, remedy = only(explain(JOB, seen("oktwo", pulling)))
    assert sentence == "the pod is on node node-1, but its container isn't: ErrImagePull: not found"
    assert "platform.image" in remedy


def test_a_volume_that_cannot_be_mounted():
    def mounting(objects):
        creating = {"name": "node", "state": {"waiting": {"reason": "ContainerCreating"}}}
        on_node(objects, containerStatuses=[creating])
        objects["events"].append(
            {
                "type": "Warning",
                "reason": "FailedMount",
                "message": "MountVolume.SetUp failed",
                "involvedObject": {"kind": "Pod", "name": objects["pods"][0]["metadata"]["name"]},
                "lastTimestamp": "2026-11-21T15:37:59Z",
                "reportingComponent": "kubelet",
            }
        )

    assert only(explain(JOB, seen("oktwo", mounting)))[0] == (
        "the pod is on node node-1: FailedMount: MountVolume.SetUp failed"
    )


def test_a_container_that_takes_its_time():
    assert only(explain(JOB, seen("oktwo", on_node))) == (
        "the pod starts on node node-1",
        "wait: a large image takes minutes to pull",
    )


def test_a_pod_without_a_pool_waits_for_what_the_scheduler_says():
    def local(objects):
        del objects["pods"][0]["spec"]["nodeSelector"]

    sentence, _ = only(explain(JOB, seen("zone", local)))
    assert sentence.startswith("no node of the cluster takes the pod: 0/")
    assert "preemption" not in sentence


def stated(kind: str, reason: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": "True", "reason": reason, "message": "m"}]}}


@pytest.mark.parametrize(
    ("train_job", "sentence", "explained"),
    [
        (None, f"there is no TrainJob {JOB}", False),
        ({"status": {}}, f"TrainJob {JOB} has no pods yet", True),
        (stated("Suspended", "Suspended"),
         f"TrainJob {JOB} is Suspended (Suspended: m)", True),
        (stated("Failed", "DeadlineExceeded"),
         f"TrainJob {JOB} is Failed (DeadlineExceeded: m)", True),
    ],
)  # fmt: skip
def test_a_job_without_pods_has_a_reason_of_its_own(train_job, sentence, explained):
    answer = explain(JOB, Observed(now=NOW, train_job=train_job))
    assert only(answer)[0] == sentence
    assert answer.is_explained is explained


def test_a_complete_job_waits_for_nothing():
    complete = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    assert explain(JOB, Observed(now=NOW, train_job=complete)).findings == ()


FAILED = {"type": "Failed", "status": "True", "reason": "JobSetFailed", "message": "one job failed"}


def test_a_launcher_that_lost_its_peer_in_the_same_second_is_not_the_reason():
    banner = f"{'=' * 60}\ntrainer FAILED\n{'=' * 60}"
    observed = Observed(
        now=NOW,
        train_job={"metadata": {"name": JOB}, "status": {"conditions": [FAILED]}},
        pods=[
            ended("a", exitCode=1, finishedAt="2026-11-21T15:37:01Z", message=banner),
            ended("b", exitCode=2, finishedAt="2026-11-21T15:37:01Z", message=f"steps: too few\n{'=' * 60}"),
        ],
    )
    assert only(explain(JOB, observed))[0].endswith("; pod b ended with exit code 2: steps: too few")


def test_a_failed_job_is_told_with_the_last_words_of_the_pod_that_failed_first():
    words = "Traceback\n  trainer.errors.ConfigError: steps: Input should be greater than 0\n"
    observed = Observed(
        now=NOW,
        train_job={"metadata": {"name": JOB}, "status": {"conditions": [FAILED]}},
        pods=[
            ended("b", exitCode=143, finishedAt="2026-11-21T15:37:09Z", message="ended with its peers"),
            ended("a", exitCode=2, finishedAt="2026-11-21T15:37:01Z", message=words),
            ended("c", exitCode=0, finishedAt="2026-11-21T15:37:00Z"),
        ],
    )
    assert only(explain(JOB, observed))[0] == (
        f"TrainJob {JOB} is Failed (JobSetFailed: one job failed); pod a ended with exit code 2: "
        "trainer.errors.ConfigError: steps: Input should be greater than 0"
    )


def ended(name: str, **state: Any) -> dict[str, Any]:
    status = {"phase": "Failed", "containerStatuses": [{"name": "node", "state": {"terminated": state}}]}
    return {"metadata": {"name": name}, "spec": {"nodeName": "node-1"}, "status": status}
