"""Manifests with one fault each: the fault is named, and nothing else is."""

import copy
from decimal import Decimal

import pytest

from tests.plan_factory import bindings_of, planned
from workloads.catalogue.topologies import NAMED_TOPOLOGIES
from workloads.rendering.lint import lint
from workloads.rendering.manifests import documents
from workloads.rendering.quantities import number

LIMIT = 2**20


def faulty(change, topology="g6e12xl-4x4-efa1"):
    """Sentences about the topology's documents after one change of one of them."""
    plan = planned(topology)
    rendered = copy.deepcopy(documents(plan, bindings_of(plan)))
    change({d["kind"]: d for d in rendered})
    return lint(rendered)


def pod_of(by_kind):
    return job_of(by_kind)["template"]["spec"]["template"]["spec"]


def job_of(by_kind):
    return by_kind["ClusterTrainingRuntime"]["spec"]["template"]["spec"]["replicatedJobs"][0]


def trainer_of(by_kind):
    return by_kind["TrainJob"]["spec"]["trainer"]


def node_of(by_kind):
    return pod_of(by_kind)["containers"][0]


def add_variable(**variable):
    return lambda d: trainer_of(d)["env"].append(variable)


def asks_for_huge_pages(d):
    for part in trainer_of(d)["resourcesPerNode"].values():
        part["hugepages-2Mi"] = "5120Mi"


FAULTS = [
    (asks_for_huge_pages, "hugepages-2Mi: Karpenter knows no huge pages"),
    (
        lambda d: trainer_of(d)["resourcesPerNode"]["requests"].pop("vpc.amazonaws.com/efa"),
        "vpc.amazonaws.com/efa is None in requests and 1 in limits",
    ),
    (
        lambda d: trainer_of(d)["resourcesPerNode"]["limits"].update({"nvidia.com/gpu": "3"}),
        "nvidia.com/gpu is 4 in requests and 3 in limits",
    ),
    (lambda d: node_of(d)["securityContext"].update(privileged=True), "privileged: true shows a pod every EFA"),
    (
        lambda d: pod_of(d)["volumes"].append({"name": "ib", "hostPath": {"path": "/dev/infiniband"}}),
        "hostPath: a pod mounts no folder of its host",
    ),
    (lambda d: pod_of(d).update(hostNetwork=True), "hostNetwork: only a topology of variant hostnet has it"),
    (lambda d: pod_of(d).update(hostIPC=True), "hostIPC: only a topology of variant hostipc has it"),
    (lambda d: pod_of(d).update(hostPID=True), "hostPID: the job doesn't need it"),
    (lambda d: pod_of(d).update(shareProcessNamespace=True), "shareProcessNamespace: the job doesn't need it"),
    (
        lambda d: d["ClusterTrainingRuntime"]["spec"]["template"]["spec"].update(ttlSecondsAfterFinished=60),
        "ttlSecondsAfterFinished: Trainer 2.3 makes a failed job anew",
    ),
    (lambda d: job_of(d)["template"]["metadata"].clear(), "numNodes is ignored without trainer.kubeflow.org/"),
    (
        lambda d: d["ClusterTrainingRuntime"]["spec"]["template"]["spec"].pop("failurePolicy"),
        "failurePolicy.maxRestarts is missing",
    ),
    (
        lambda d: d["ClusterTrainingRuntime"]["spec"]["template"]["spec"]["failurePolicy"].update(maxRestarts=1),
        "failurePolicy.maxRestarts isn't 0 and no claim is mounted",
    ),
    (lambda d: job_of(d)["template"]["spec"].pop("backoffLimit"), "backoffLimit isn't 0"),
    (lambda d: pod_of(d).pop("restartPolicy"), "restartPolicy isn't Never"),
    (
        lambda d: node_of(d).update(resources={p: {"nvidia.com/gpu": "4"} for p in ("requests", "limits")}),
        "container node: nvidia.com/gpu would be merged with the TrainJob's",
    ),
    (
        lambda d: d["NodePool"]["spec"]["template"]["metadata"]["labels"].update({"app.kubernetes.io/name": "x"}),
        "label app.kubernetes.io/name: the kubelet doesn't start with it",
    ),
    (lambda d: d["TrainJob"]["spec"].pop("activeDeadlineSeconds"), "spec.activeDeadlineSeconds is missing"),
    (lambda d: d["TrainJob"]["metadata"].update(name="x" * 41), "the name has 41 characters"),
    (add_variable(name="NCCL_NET", value="Socket"), "NCCL_NET stands twice"),
    (add_variable(name="PET_NNODES", value="2"), "PET_NNODES is Trainer's own to set"),
    (
        add_variable(name="X", value="1", valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}),
        "X has both value and valueFrom",
    ),
    (add_variable(name="HF_TOKEN", value="placed"), "HF_TOKEN is given in the clear"),
    (lambda d: trainer_of(d)["args"].append("--token=hf_" + "a" * 34), "holds what looks like a token"),
    (lambda d: d["Namespace"].update(kind="Secret"), "a Secret's value would stand in the rendered files"),
    (lambda d: d["ConfigMap"]["data"].update(large="x" * LIMIT), f"the API server takes {LIMIT}"),
    (
        lambda d: trainer_of(d)["resourcesPerNode"]["requests"].update(memory="297Gi"),
        "memory asks for 297Gi above its limit 296Gi",
    ),
    (lambda d: d["ClusterTrainingRuntime"]["spec"]["mlPolicy"].pop("torch"), "mlPolicy.torch is missing"),
    (lambda d: trainer_of(d).update(numNodes=0), "spec.trainer.numNodes is 0"),
    (lambda d: node_of(d)["volumeMounts"][0].update(name="nope"), "container node mounts nope, which is no volume"),
    (lambda d: pod_of(d).update(serviceAccountName="trainr"), "its pods name the ServiceAccount trainr"),
    (lambda d: pod_of(d)["volumes"][0]["configMap"].update(name="nope"), "its pods name the ConfigMap nope"),
    (
        lambda d: pod_of(d)["volumes"].append({"name": "fsx", "persistentVolumeClaim": {"claimName": "fsx"}}),
        "its pods name the PersistentVolumeClaim fsx",
    ),
    (
        lambda d: pod_of(d)["nodeSelector"].update({"karpenter.sh/nodepool": "gpu-p4d"}),
        "nodeSelector karpenter.sh/nodepool is gpu-p4d, the documents make gpu-g6e12xl",
    ),
    (
        lambda d: pod_of(d)["nodeSelector"].update({"node.kubernetes.io/instance-type": "g6e.48xlarge"}),
        "nodeSelector asks for g6e.48xlarge, pool gpu-g6e12xl makes g6e.12xlarge",
    ),
    (lambda d: pod_of(d).update(tolerations=[]), "its pods don't tolerate nvidia.com/gpu:NoSchedule of pool"),
    (
        lambda d: pod_of(d)["tolerations"][0].update(operator="Equal", value="absent"),
        "its pods don't tolerate nvidia.com/gpu:NoSchedule of pool",
    ),
    (
        lambda d: d["NodePool"]["spec"]["template"]["spec"]["nodeClassRef"].update(name="gpu-x"),
        "nodeClassRef names EC2NodeClass gpu-x",
    ),
    (lambda d: d["TrainJob"]["spec"]["runtimeRef"].update(name="nobody"), "spec.runtimeRef names nobody"),
    (lambda d: (trainer_of(d).pop("image"), node_of(d).pop("image")), "neither spec.trainer nor container node"),
    (
        lambda d: [part.update({"vpc.amazonaws.com/efa": "2"}) for part in trainer_of(d)["resourcesPerNode"].values()],
        "2 vpc.amazonaws.com/efa a pod, g6e.12xlarge has 1",
    ),
]


@pytest.mark.parametrize(("change", "sentence"), FAULTS, ids=[sentence[:40] for _, sentence in FAULTS])
def test_each_fault_is_named_and_nothing_else(change, sentence):
    found = faulty(change)
    assert found
    assert all(sentence in fault for fault in found)


def test_a_fault_names_its_object_and_field():
    (found,) = faulty(lambda d: node_of(d)["securityContext"].update(privileged=True))
    assert found.startswith("ClusterTrainingRuntime/g6e12xl-4x4-efa1: spec.template.spec.replicatedJobs.0.")


@pytest.mark.parametrize("name", [row.name for row in NAMED_TOPOLOGIES])
def test_no_rendered_document_has_a_fault(name):
    plan = planned(name)
    assert lint(documents(plan, bindings_of(plan))) == []


def test_a_volume_of_the_host_behind_a_claim_is_no_fault():
    assert faulty(lambda _: None, "cpu-2x1-tcp") == []


def test_an_image_in_one_of_both_places_is_enough():
    assert faulty(lambda d: trainer_of(d).pop("image")) == []
    assert faulty(lambda d: node_of(d).pop("image")) == []


def test_a_toleration_of_everything_tolerates_the_pool():
    assert faulty(lambda d: pod_of(d).update(tolerations=[{"operator": "Exists"}])) == []


@pytest.mark.parametrize(("quantity", "value"), [("500m", "0.5"), ("1Gi", "1073741824"), ("2", "2"), ("1.5k", "1500")])
def test_quantities_are_numbers(quantity, value):
    assert number(quantity) == Decimal(value)


def test_what_is_no_quantity_is_told():
    with pytest.raises(ValueError, match="'296GB' isn't a quantity; write a number with one of"):
        number("296GB")
