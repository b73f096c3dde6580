"""Manifests with one fault each: refused by the real admission, or by our own check before anything is applied."""

import copy
import dataclasses
from typing import Any

import pytest
import yaml

from tests.e2e.children import wait_until
from tests.e2e.cluster.api import ApiError, Document
from tests.e2e.cluster.cluster import Cluster
from tests.e2e.cluster.shared import shared_cluster
from tests.e2e.tools import module_path
from tests.plan_factory import bindings_of, planned
from workloads.catalogue.topologies import NAMED_TOPOLOGIES
from workloads.planning.plan import NAMESPACE
from workloads.rendering.admission import POLICY
from workloads.rendering.lint import lint
from workloads.rendering.manifests import documents
from workloads.rendering.names import ANCESTOR_LABEL

pytestmark = pytest.mark.e2e

TOPOLOGY = "g6e12xl-4x4-efa1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
EFA = "vpc.amazonaws.com/efa"


def made(topology: str = TOPOLOGY) -> list[Document]:
    """The program's documents, with ids in the form that AWS gives them."""
    plan = planned(topology)
    ids: dict[str, Any] = {
        "records_uri": "s3://records/dev",
        "subnet_id": "subnet-0a",
        "security_group_id": "sg-0a",
        "instance_profile": "gpu",
        "placement_group": "gpu",
        "tags": {"topolab:stack": "dev"},
    }
    local = plan.topology.machine.is_local
    bindings = bindings_of(plan) if local else dataclasses.replace(bindings_of(plan), **ids)
    return documents(plan, bindings)


@pytest.fixture(scope="module")
def cluster(pytestconfig, tmp_path_factory):
    """With Karpenter's definitions too, and everything of the topology but its TrainJob."""
    cluster = shared_cluster(pytestconfig, tmp_path_factory)
    folder = module_path("github.com/aws/karpenter-provider-aws") / "pkg/apis/crds"
    definitions = [yaml.safe_load(path.read_text()) for path in folder.glob("karpenter*.yaml")]
    for definition in definitions:
        cluster.api.apply(definition)
    names = [definition["metadata"]["name"] for definition in definitions]
    wait_until(lambda: all(is_served(cluster, name) for name in names), 30, "Karpenter's kinds are served")
    for document in made():
        if document["kind"] != "TrainJob":
            cluster.api.apply(document)
    return cluster


def is_served(cluster: Cluster, definition: str) -> bool:
    found = cluster.api.get(f"{CRDS}/{definition}")
    conditions = (found.get("status") or {}).get("conditions") or ()
    established = any((one["type"], one["status"]) == ("Established", "True") for one in conditions)
    group, plural = found["spec"]["group"], found["spec"]["names"]["plural"]
    version = next(one["name"] for one in found["spec"]["versions"] if one["storage"])
    served = cluster.api.get(f"/apis/{group}/{version}")["resources"] if established else []
    return any(one["name"] == plural for one in served)


def refusals(cluster: Cluster, change) -> tuple[str, str]:
    """What admission and what our check say of the documents after the change; empty: nothing."""
    before, after = made(), made()
    change({one["kind"]: one for one in after})
    said = []
    for old, new in zip(before, after, strict=True):
        if new != old:
            try:
                cluster.api.apply(new, dry_run=True)
            except ApiError as error:
                said.append(error.message)
    return "; ".join(said), "; ".join(lint(after))


def runtime_of(d):
    return d["ClusterTrainingRuntime"]["spec"]["template"]["spec"]


def job_of(d):
    return runtime_of(d)["replicatedJobs"][0]


def pod_of(d):
    return job_of(d)["template"]["spec"]["template"]["spec"]


def node_of(d):
    return pod_of(d)["containers"][0]


def trainer_of(d):
    return d["TrainJob"]["spec"]["trainer"]


def pool_of(d):
    return d["NodePool"]["spec"]["template"]["spec"]


def class_of(d):
    return d["EC2NodeClass"]["spec"]


def rename(mapping: Document, old: str, new: str) -> None:
    mapping[new] = mapping.pop(old)


def drop_image(d) -> None:
    del trainer_of(d)["image"], node_of(d)["image"]


def ask_for_efa(count: str):
    def change(d) -> None:
        for part in trainer_of(d)["resourcesPerNode"].values():
            part[EFA] = count

    return change


# What is changed, and words of who refuses it: the real admission, our own check. Empty: it lets it pass.
FAULTS = {
    "a renamed field of the job": (
        lambda d: rename(trainer_of(d), "numProcPerNode", "procsPerNode"),
        ".spec.trainer.procsPerNode: field not declared in schema",
        "",
    ),
    "a renamed field of the runtime": (
        lambda d: d["ClusterTrainingRuntime"]["spec"]["mlPolicy"]["torch"].update(numProcPerNode=4),
        ".spec.mlPolicy.torch.numProcPerNode: field not declared in schema",
        "",
    ),
    "a renamed field of the pool": (
        lambda d: rename(d["NodePool"]["spec"]["disruption"], "consolidateAfter", "after"),
        ".spec.disruption.after: field not declared in schema",
        "",
    ),
    "a renamed field of the node class": (
        lambda d: rename(class_of(d), "networkInterfaces", "interfaces"),
        ".spec.interfaces: field not declared in schema",
        "",
    ),
    "a missing ancestor label": (
        lambda d: rename(job_of(d)["template"]["metadata"]["labels"], ANCESTOR_LABEL, "ancestor"),
        "",
        "numNodes is ignored without trainer.kubeflow.org/trainjob-ancestor-step",
    ),
    "EFA in limits alone": (
        lambda d: trainer_of(d)["resourcesPerNode"]["requests"].pop(EFA),
        "",
        "vpc.amazonaws.com/efa is None in requests and 1 in limits",
    ),
    "more EFA devices than the type has": (ask_for_efa("2"), "", "2 vpc.amazonaws.com/efa a pod, g6e.12xlarge has 1"),
    "an unknown runtime": (
        lambda d: d["TrainJob"]["spec"]["runtimeRef"].update(name="nobody"),
        'validator.trainjob.trainer.kubeflow.org" denied the request: spec.RuntimeRef',
        "spec.runtimeRef names nobody",
    ),
    "a time to live": (
        lambda d: runtime_of(d).update(ttlSecondsAfterFinished=60),
        "",
        "ttlSecondsAfterFinished: Trainer 2.3 makes a failed job anew",
    ),
    "a variable that is Trainer's": (
        lambda d: trainer_of(d)["env"].append({"name": "PET_NNODES", "value": "2"}),
        'validator.trainjob.trainer.kubeflow.org" denied the request: spec.trainer.env',
        "PET_NNODES is Trainer's own to set",
    ),
    "a variable twice": (
        lambda d: trainer_of(d)["env"].append({"name": "NCCL_DEBUG", "value": "WARN"}),
        'duplicate entries for key [name="NCCL_DEBUG"]',
        "NCCL_DEBUG stands twice",
    ),
    "an image left out": (drop_image, "", "neither spec.trainer nor container node of g6e12xl-4x4-efa1 has an image"),
    "a container of another name": (
        lambda d: node_of(d).update(name="trainer"),
        'validator.clustertrainingruntime.trainer.kubeflow.org" denied the request',
        "",
    ),
    "no torch policy": (
        lambda d: d["ClusterTrainingRuntime"]["spec"]["mlPolicy"].pop("torch"),
        "",
        "mlPolicy.torch is missing",
    ),
    "no pods": (lambda d: trainer_of(d).update(numNodes=0), "", "spec.trainer.numNodes is 0"),
    "no deadline": (
        lambda d: d["TrainJob"]["spec"].pop("activeDeadlineSeconds"),
        "",
        "spec.activeDeadlineSeconds is missing",
    ),
    "a missing toleration": (
        lambda d: pod_of(d).update(tolerations=[]),
        "",
        "don't tolerate nvidia.com/gpu:NoSchedule",
    ),
    "another pool": (
        lambda d: pod_of(d)["nodeSelector"].update({"karpenter.sh/nodepool": "gpu-p4d"}),
        "",
        "nodeSelector karpenter.sh/nodepool is gpu-p4d",
    ),
    "a config map that isn't there": (
        lambda d: pod_of(d)["volumes"][0]["configMap"].update(name="nope"),
        "",
        "its pods name the ConfigMap nope",
    ),
    "a service account that isn't there": (
        lambda d: pod_of(d).update(serviceAccountName="trainr"),
        "",
        "its pods name the ServiceAccount trainr",
    ),
    "a mount of no volume": (
        lambda d: node_of(d)["volumeMounts"][0].update(name="nope"),
        "",
        "container node mounts nope, which is no volume",
    ),
    "more memory asked than allowed": (
        lambda d: trainer_of(d)["resourcesPerNode"]["requests"].update(memory="297Gi"),
        "",
        "memory asks for 297Gi above its limit 296Gi",
    ),
    "an operator in small letters": (
        lambda d: pool_of(d)["requirements"][1].update(operator="in"),
        'spec.template.spec.requirements[1].operator: Unsupported value: "in"',
        "",
    ),
    "a misspelt taint effect": (
        lambda d: pool_of(d)["taints"][0].update(effect="NoSchedul"),
        'spec.template.spec.taints[0].effect: Unsupported value: "NoSchedul"',
        "don't tolerate nvidia.com/gpu:NoSchedul of pool gpu-g6e12xl",
    ),
    "a node class that isn't there": (
        lambda d: pool_of(d)["nodeClassRef"].update(name="gpu-x"),
        "",
        "nodeClassRef names EC2NodeClass gpu-x",
    ),
    "an image of nodes without a date": (
        lambda d: class_of(d).update(amiSelectorTerms=[{"alias": "al2023"}]),
        "'alias' is improperly formatted, must match the format 'family@version'",
        "",
    ),
    "two devices at one place of a card": (
        lambda d: class_of(d)["networkInterfaces"].append(copy.deepcopy(class_of(d)["networkInterfaces"][0])),
        "networkInterfaces must not have duplicate networkCardIndex and deviceIndex pairs",
        "",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_refused_by_whom_the_table_says(cluster, fault):
    change, by_admission, by_lint = FAULTS[fault]
    admission, check = refusals(cluster, change)
    assert bool(admission) == bool(by_admission), admission
    assert by_admission in admission
    assert bool(check) == bool(by_lint), check
    assert by_lint in check
    assert admission or check, "nobody refuses it"


@pytest.mark.parametrize("topology", [row.name for row in NAMED_TOPOLOGIES])
def test_what_the_program_renders_is_admitted(cluster, topology):
    for document in made(topology):
        if document["kind"] == "TrainJob":
            runtime = next(one for one in made(topology) if one["kind"] == "ClusterTrainingRuntime")
            cluster.api.apply(runtime)
        cluster.api.apply(document, dry_run=True)


def pod(topology: str = TOPOLOGY) -> Document:
    """A pod as the topology's runtime describes it."""
    (runtime,) = [one for one in made(topology) if one["kind"] == "ClusterTrainingRuntime"]
    template = job_of({"ClusterTrainingRuntime": runtime})["template"]["spec"]["template"]
    metadata = {**template["metadata"], "name": "one", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copy.deepcopy(template["spec"])}


def said_of(cluster: Cluster, document: Document) -> str:
    """What admission says of it; empty: nothing."""
    try:
        cluster.api.apply(document, dry_run=True)
    except ApiError as error:
        return error.message
    return ""


@pytest.fixture(scope="module")
def guarded(cluster):
    """The policy is read some moments after it is made."""
    privileged = pod()
    privileged["spec"]["hostPID"] = True
    wait_until(lambda: "hostPID" in said_of(cluster, privileged), 30, "the pods' policy holds")
    return cluster


def first(spec: Document) -> Document:
    context: Document = spec["containers"][0]["securityContext"]
    return context


FORBIDDEN = {
    "a privileged container": (
        lambda spec: (first(spec).pop("allowPrivilegeEscalation"), first(spec).update(privileged=True)),
        "privileged shows a pod every EFA device of its host",
    ),
    "a privileged init container": (
        lambda spec: spec["initContainers"][0].update(securityContext={"privileged": True}),
        "privileged shows a pod every EFA device of its host",
    ),
    "another capability": (
        lambda spec: first(spec)["capabilities"]["add"].append("SYS_ADMIN"),
        "no capability but IPC_LOCK may be added",
    ),
    "a folder of the host": (
        lambda spec: spec["volumes"].append({"name": "host", "hostPath": {"path": "/"}}),
        "hostPath mounts a folder of the host",
    ),
    "the host's processes": (lambda spec: spec.update(hostPID=True), "hostPID shows the processes of the host"),
    "the host's network": (
        lambda spec: spec.update(hostNetwork=True),
        "hostNetwork is for topologies of variant hostnet alone",
    ),
    "the host's memory": (lambda spec: spec.update(hostIPC=True), "hostIPC is for topologies of variant hostipc alone"),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_whoever_makes_a_pod_in_the_namespace_gets_no(guarded, what):
    change, expected = FORBIDDEN[what]
    document = pod()
    change(document["spec"])
    said = said_of(guarded, document)
    assert f"ValidatingAdmissionPolicy '{POLICY}'" in said
    assert expected in said


@pytest.mark.parametrize("topology", ["g6e12xl-4x4-tcp-hostnet", "p4d24xl-4x1-tcp-hostipc", TOPOLOGY, "cpu-2x1-tcp"])
def test_pods_of_the_program_are_let_through_and_the_hosts_are_for_variants_that_name_them(guarded, topology):
    assert said_of(guarded, pod(topology)) == ""


def test_pods_of_other_namespaces_are_none_of_the_policys_business(guarded):
    document = pod()
    document["metadata"]["namespace"] = "kube-system"
    document["spec"] = {"containers": [{"name": "one", "image": "x", "securityContext": {"privileged": True}}]}
    assert said_of(guarded, document) == ""
