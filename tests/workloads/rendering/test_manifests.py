"""What the documents of a plan hold, and what they must never hold."""

import json
import re
from dataclasses import fields, replace
from typing import Any

import pytest

from tests.plan_factory import DIGEST_IMAGE, arms_of, bindings_of, planned, rendered
from tests.source import ROOT
from trainer import check_image
from trainer.config import TrainConfig
from workloads.catalogue.topologies import NAMED_TOPOLOGIES, parse_topology
from workloads.catalogue.versions import SEED_IMAGE, STOCK_IMAGE
from workloads.rendering import trainer_code
from workloads.rendering.bindings import Bindings
from workloads.rendering.manifests import documents, platform_documents, topology_documents
from workloads.rendering.quantities import cpu, gib
from workloads.rendering.stopping import SHUTDOWN_VARIABLE

NAMES = [row.name for row in NAMED_TOPOLOGIES]
EC2_NAMES = [name for name in NAMES if not parse_topology(name).machine.is_local]


def pod_spec(plan):
    job = rendered(plan)["ClusterTrainingRuntime"]["spec"]["template"]["spec"]["replicatedJobs"][0]
    return job["template"]["spec"]["template"]["spec"]


def trainer_of(plan):
    return rendered(plan)["TrainJob"]["spec"]["trainer"]


def variables(plan):
    return {v["name"]: v.get("value", v.get("valueFrom")) for v in trainer_of(plan)["env"]}


class Late:
    """Stands for a value that isn't known yet: nothing can be done with it but to place it."""

    def _refuse(self, *_):
        raise AssertionError("a late-bound value was looked into")

    __str__ = __repr__ = __format__ = __eq__ = __bool__ = __len__ = __iter__ = _refuse
    __hash__ = object.__hash__


def placed(value, found):
    if isinstance(value, dict):
        for inner in value.values():
            placed(inner, found)
    elif isinstance(value, list):
        for inner in value:
            placed(inner, found)
    elif isinstance(value, Late):
        found.append(id(value))
    return found


def test_late_bound_values_are_placed_and_never_looked_into():
    plain = {"records_folder", "tags"}
    late: dict[str, Any] = {f.name: Late() for f in fields(Bindings) if f.name not in plain}
    tag = Late()
    plan = planned(
        "g6e12xl-4x4-efa1-pg", platform={"storage": {"fsx": "scratch"}}, hf_token=True,
        data={"source": "hf:Salesforce/wikitext"},
    )  # fmt: skip
    bindings = replace(Bindings.placeholders(), **late, tags={"owner": tag})
    found = placed(documents(plan, bindings), [])
    assert sorted(found) == sorted(id(value) for value in [*late.values(), tag])


@pytest.mark.parametrize("name", NAMES)
def test_a_job_asks_for_efa_exactly_when_its_topology_names_it(name):
    asked = trainer_of(planned(name))["resourcesPerNode"]
    assert ("efa" in name) == ("vpc.amazonaws.com/efa" in asked["limits"])
    devices = {key: value for key, value in asked["limits"].items() if "/" in key}
    assert devices == {key: value for key, value in asked["requests"].items() if "/" in key}


@pytest.mark.parametrize("name", NAMES)
def test_only_the_variant_that_names_it_touches_the_host(name):
    spec = pod_spec(planned(name))
    assert spec.get("hostNetwork", False) == ("hostnet" in name)
    assert spec.get("dnsPolicy") == ("ClusterFirstWithHostNet" if "hostnet" in name else None)
    assert not {"hostPID", "shareProcessNamespace", "hostIPC"} & spec.keys()


def test_hostipc_shares_the_hosts_shm_and_lays_no_volume_over_it():
    shared, own = (pod_spec(planned(n)) for n in ("p4d24xl-4x1-efa1-hostipc", "p4d24xl-4x1-efa1"))
    assert shared["hostIPC"] is True
    assert "/dev/shm" not in json.dumps(shared).replace('"--shm-gib"', "")
    assert "shm" not in {volume["name"] for volume in shared["volumes"]}
    for container in (*own["containers"], own["initContainers"][-1]):
        assert {"name": "shm", "mountPath": "/dev/shm"} in container["volumeMounts"]


@pytest.mark.parametrize("name", NAMES)
def test_a_run_without_checkpoints_never_starts_over_and_always_ends(name):
    by_kind = rendered(planned(name, platform={"ttlMinutes": 90}))
    runtime, job = by_kind["ClusterTrainingRuntime"]["spec"]["template"]["spec"], by_kind["TrainJob"]["spec"]
    replicated = runtime["replicatedJobs"][0]["template"]
    assert runtime["failurePolicy"] == {"maxRestarts": 0}
    assert replicated["spec"]["backoffLimit"] == 0
    assert replicated["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert job["activeDeadlineSeconds"] == 90 * 60
    assert "ttlSecondsAfterFinished" not in json.dumps([runtime, job])


@pytest.mark.parametrize("name", NAMES)
def test_a_failed_containers_last_words_become_part_of_its_pods_status(name):
    spec = pod_spec(planned(name))
    containers = [*spec.get("initContainers", []), *spec["containers"]]
    assert {one["terminationMessagePolicy"] for one in containers} == {"FallbackToLogsOnError"}


def test_memory_may_be_locked_on_gpus_alone_and_rights_never_grow():
    with_gpus, without = (pod_spec(planned(n))["containers"][0] for n in ("p4d24xl-1x4-efa4", "cpu-2x1-tcp"))
    assert with_gpus["securityContext"]["capabilities"] == {"add": ["IPC_LOCK"]}
    assert with_gpus["securityContext"]["allowPrivilegeEscalation"] is False
    assert without["securityContext"] == {"allowPrivilegeEscalation": False}


def test_pods_image_and_check_agree_on_the_user_whose_capability_is_effective():
    for name in EC2_NAMES:
        spec = pod_spec(planned(name))
        for container in (*spec["initContainers"], *spec["containers"]):
            assert container["securityContext"]["runAsUser"] == check_image.USER
    dockerfile = (ROOT / "trainer" / "Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"^USER (\d+):\d+$", dockerfile, re.MULTILINE) == [str(check_image.USER)]
    # A local machine's pods run as whoever started them.
    assert "runAsUser" not in pod_spec(planned("h200x4-1x4-local"))["containers"][0]["securityContext"]


PLACES = [
    ("g6e12xl-4x4-efa1", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
    ("p4d24xl-2x8-efa4-hostnet", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
    ("p4d24xl-4x1-efa1", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
    ("p4d24xl-8x1-tcp", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
    ("p4d24xl-8x1-efa1", "podAffinity", "preferredDuringSchedulingIgnoredDuringExecution"),
]


@pytest.mark.parametrize(("name", "kind", "when"), PLACES)
def test_affinity_holds_the_pods_to_the_nodes_of_the_plan(name, kind, when):
    plan = planned(name)
    affinity = pod_spec(plan)["affinity"]
    assert list(affinity) == [kind]
    assert list(affinity[kind]) == [when]
    term = affinity[kind][when][0]
    selected = term.get("podAffinityTerm", term)["labelSelector"]["matchLabels"]
    job = rendered(plan)["ClusterTrainingRuntime"]["spec"]["template"]["spec"]["replicatedJobs"][0]
    own = job["template"]["spec"]["template"]["metadata"]["labels"]
    # Kubernetes waives a required affinity for the first pod only where the pod matches its own term.
    assert selected.items() <= own.items()


def test_a_lone_pod_needs_no_affinity():
    assert "affinity" not in pod_spec(planned("p4d24xl-1x4-efa4"))


def test_pods_of_a_placement_group_go_to_its_own_pool_and_others_never():
    outside, inside = (rendered(planned(n)) for n in ("g6e12xl-4x4-efa1", "g6e12xl-4x4-efa1-pg"))
    selectors = [pod_spec(planned(n))["nodeSelector"] for n in ("g6e12xl-4x4-efa1", "g6e12xl-4x4-efa1-pg")]
    for by_kind, selector in zip((outside, inside), selectors, strict=True):
        assert by_kind["NodePool"]["metadata"]["name"] == selector["karpenter.sh/nodepool"]
        assert (
            by_kind["NodePool"]["spec"]["template"]["spec"]["nodeClassRef"]["name"]
            == (by_kind["EC2NodeClass"]["metadata"]["name"])
        )
    assert selectors[0] != selectors[1]
    assert "placementGroupSelector" not in outside["EC2NodeClass"]["spec"]
    assert inside["EC2NodeClass"]["spec"]["placementGroupSelector"] == {"name": "${placement-group}"}


@pytest.mark.parametrize("name", EC2_NAMES)
def test_a_pool_can_hold_the_plan_and_no_more(name):
    plan = planned(name)
    pool = rendered(plan)["NodePool"]["spec"]
    instance = plan.topology.machine.instance_type
    assert instance is not None
    assert pool["limits"] == {"nodes": str(plan.nodes), "nvidia.com/gpu": str(plan.nodes * instance.gpus)}
    wanted = {r["key"]: r["values"] for r in pool["template"]["spec"]["requirements"]}
    assert wanted["node.kubernetes.io/instance-type"] == [instance.name]
    assert wanted["topology.kubernetes.io/zone"] == ["us-east-1b"]
    assert wanted["karpenter.sh/capacity-type"] == ["on-demand"]


def test_spot_is_bought_where_it_is_asked_for():
    pool = rendered(planned("g6e8xl-2x1-efa1", platform={"capacity": {"mode": "spot"}}))["NodePool"]
    wanted = {r["key"]: r["values"] for r in pool["spec"]["template"]["spec"]["requirements"]}
    assert wanted["karpenter.sh/capacity-type"] == ["spot"]


@pytest.mark.parametrize(
    ("name", "devices"), [("g6e12xl-4x4-tcp", 1), ("p4d24xl-1x4-efa4", 4), ("p548xl-1x8-efa32", 32)]
)
def test_every_node_has_all_efa_devices_of_its_type_whatever_the_arm_asks(name, devices):
    interfaces = rendered(planned(name))["EC2NodeClass"]["spec"]["networkInterfaces"]
    places = [(i["networkCardIndex"], i["deviceIndex"], i["interfaceType"]) for i in interfaces]
    assert places[:2] == [(0, 0, "interface"), (0, 1, "efa-only")]
    assert places[2:] == [(card, 0, "efa-only") for card in range(1, devices)]


def test_a_mounted_trainer_brings_locked_wheels_and_checks_its_image():
    plan = planned("g6e12xl-4x4-efa1")
    spec, code = pod_spec(plan), rendered(plan)["ConfigMap/g6e12xl-4x4-efa1-code"]["data"]
    wheels, check = spec["initContainers"]
    assert "--require-hashes" in wheels["command"]
    assert "--no-deps" in wheels["command"]
    assert "requirements.lock" in code
    assert {"config.py", "__main__.py", "check_image.py"} <= code.keys()
    assert not {"Dockerfile", "requirements.txt"} & code.keys()
    command = " ".join(check["command"])
    assert command == "python -m trainer.check_image --efa-devices 1 --shm-gib 64 --net-plugin ofi"
    assert {c["image"] for c in (*spec["initContainers"], *spec["containers"])} == {STOCK_IMAGE}
    assert variables(plan)["PYTHONPATH"] == check["env"][0]["value"] == "/opt/topolab/code:/opt/topolab/site"


def test_the_seeds_image_names_no_plugin_to_look_for():
    check = pod_spec(planned("g6e12xl-4x4-efa1", platform={"image": {"base": SEED_IMAGE}}))["initContainers"][1]
    assert check["image"] == SEED_IMAGE
    assert "--net-plugin" not in check["command"]


def test_an_own_image_is_checked_and_nothing_is_mounted_into_it():
    plan = planned("g6e12xl-4x4-efa1", platform={"image": DIGEST_IMAGE})
    spec = pod_spec(plan)
    assert [c["name"] for c in spec["initContainers"]] == ["check"]
    assert "env" not in spec["initContainers"][0]
    assert {v["name"] for v in spec["volumes"]} == {"config", "shm"}
    assert "PYTHONPATH" not in variables(plan)
    assert "ConfigMap/g6e12xl-4x4-efa1-code" not in rendered(plan)
    assert trainer_of(plan)["image"] == DIGEST_IMAGE


def test_a_local_machine_runs_its_own_python_with_the_mounted_trainer():
    plan = planned("cpu-2x1-tcp")
    spec, trainer = pod_spec(plan), trainer_of(plan)
    assert "initContainers" not in spec
    assert "nodeSelector" not in spec
    assert "image" not in trainer
    assert spec["containers"][0]["image"] == "local/python"
    assert trainer["command"] == ["python", "-m", "torch.distributed.run"]
    assert "requirements.lock" not in rendered(plan)["ConfigMap/cpu-2x1-tcp-code"]["data"]
    assert {d["kind"] for d in documents(plan, bindings_of(plan))}.isdisjoint({"NodePool", "EC2NodeClass"})


def test_every_mount_has_its_volume_and_every_volume_its_mount():
    plans = [planned(name, platform={"storage": {"fsx": "persistent"}}) for name in EC2_NAMES[:2]]
    for plan in [*plans, planned("cpu-1x2-local")]:
        spec = pod_spec(plan)
        mounted = {m["name"] for c in spec["containers"] for m in c["volumeMounts"]}
        assert mounted == {v["name"] for v in spec["volumes"]}


def test_records_of_a_local_machine_lie_in_a_folder_of_the_host():
    plan = planned("cpu-2x1-tcp")
    by_kind = rendered(plan)
    assert by_kind["PersistentVolume"]["spec"]["hostPath"]["path"] == "/srv/topolab/records"
    assert by_kind["PersistentVolumeClaim"]["spec"]["volumeName"] == by_kind["PersistentVolume"]["metadata"]["name"]
    assert variables(plan)["TOPOLAB_RECORDS"] == "file:///records"
    assert {"name": "records", "mountPath": "/records"} in pod_spec(plan)["containers"][0]["volumeMounts"]


def test_a_relative_records_folder_is_refused():
    with pytest.raises(ValueError, match="'records' isn't an absolute path"):
        Bindings.local(records_path="records")


def test_checkpoints_go_to_fsx_where_it_is_asked_for_and_the_node_gets_its_client():
    plan = planned("g6e12xl-4x4-efa1", platform={"storage": {"fsx": "scratch"}})
    by_kind = rendered(plan)
    assert by_kind["PersistentVolume"]["spec"]["csi"] == {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": "${fsx-file-system}",
        "volumeAttributes": {"dnsname": "${fsx-dns-name}", "mountname": "${fsx-mount-name}"},
    }
    assert by_kind["PersistentVolume"]["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert "modprobe lustre" in by_kind["EC2NodeClass"]["spec"]["userData"]
    assert variables(plan)["TOPOLAB_CHECKPOINTS"] == "/fsx/checkpoints"
    without = rendered(planned("g6e12xl-4x4-efa1"))
    assert "userData" not in without["EC2NodeClass"]["spec"]
    assert "TOPOLAB_CHECKPOINTS" not in variables(planned("g6e12xl-4x4-efa1"))


def test_a_token_is_named_where_it_is_needed_and_nowhere_given():
    plan = planned("g6e8xl-2x1-efa1", hf_token=True, data={"source": "hf:Salesforce/wikitext"})
    assert variables(plan)["HF_TOKEN"] == {"secretKeyRef": {"name": "hf-token", "key": "token"}}
    assert "Secret" not in rendered(plan)
    assert "HF_TOKEN" not in variables(planned("g6e8xl-2x1-efa1", hf_token=True))


def test_the_plans_variables_come_first_in_their_order():
    plan = planned("g6e12xl-4x4-tcp-tuned")
    names = [v["name"] for v in trainer_of(plan)["env"]]
    own = [v.name for v in plan.environment]
    assert names == [*own, "PYTHONPATH", SHUTDOWN_VARIABLE, "NODE_NAME", "TOPOLAB_RECORDS"]


@pytest.mark.parametrize("name", NAMES)
def test_the_trainer_gets_the_plans_own_config(name):
    plan = planned(name)
    text = rendered(plan)[f"ConfigMap/{name}-config"]["data"]["config.json"]
    assert TrainConfig.model_validate_json(text) == plan.config


def test_documents_are_the_platforms_then_the_topologys():
    plan = planned("g6e8xl-2x1-efa1")
    bindings = bindings_of(plan)
    parts = platform_documents(plan, bindings), topology_documents(plan, bindings)
    assert documents(plan, bindings) == [*parts[0], *parts[1]]
    assert [d["kind"] for d in parts[0]] == [
        "Namespace", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ServiceAccount", "EC2NodeClass",
        "NodePool",
    ]  # fmt: skip
    assert [d["kind"] for d in parts[1]] == ["ConfigMap", "ConfigMap", "ClusterTrainingRuntime", "TrainJob"]


def test_another_attempt_is_another_job_and_nothing_else():
    first, second = (documents(planned("g6e8xl-2x1-efa1", attempt=n), Bindings.placeholders()) for n in (1, 2))
    changed = [a["kind"] for a, b in zip(first, second, strict=True) if a != b]
    assert changed == ["ConfigMap", "TrainJob"]
    assert first[-1]["metadata"]["name"] != second[-1]["metadata"]["name"]


def test_another_topology_of_the_type_keeps_class_and_pool():
    first, second = (rendered(planned(n)) for n in ("g6e8xl-2x1-efa1", "g6e8xl-2x1-tcp"))
    for kind in ("Namespace", "ServiceAccount", "EC2NodeClass", "NodePool"):
        assert first[kind] == second[kind]


def test_a_missing_lock_is_named(monkeypatch, tmp_path):
    (tmp_path / "config.py").write_text("")
    monkeypatch.setattr(trainer_code, "files", lambda _: tmp_path)
    assert trainer_code.trainer_files(with_lock=False) == {"config.py": ""}
    with pytest.raises(ValueError, match=r"trainer/requirements\.lock is missing"):
        trainer_code.trainer_files(with_lock=True)


def test_quantities_read_as_the_api_server_gives_them_back():
    assert [cpu(40000), cpu(500), cpu(43028)] == ["40", "500m", "43028m"]
    assert [gib(64), gib(1024), gib(1536), gib(2048)] == ["64Gi", "1Ti", "1536Gi", "2Ti"]


MAY_VARY = re.compile(
    r"""
    .*/metadata/(name|labels/topolab\.dev/topology)
    | .*/labels/topolab\.dev/topology | .*/matchLabels/topolab\.dev/topology | .*/configMap/name
    | .*/runtimeRef/name
    | .*/(requests|limits)/vpc\.amazonaws\.com/efa
    | .*/env/(NCCL_NET|NCCL_NET_PLUGIN|FI_EFA_USE_HUGE_PAGE)(/value)?
    | .*/initContainers/check/command.*
    | .*/config\.json/(arm|topology|job_name|expectations|predicted|hang_s)(/.*)?
    # A slower link makes longer steps, and one that is interrupted, or seems to hang, is given the time to end.
    | .*/terminationGracePeriodSeconds | .*/env/TORCH_ELASTIC_SHUTDOWN_TIMEOUT/value
    """,
    re.VERBOSE,
)


def differences(one, other, path=""):
    """Paths at which two documents differ; list items go by their name, JSON texts by their keys."""
    if path.endswith("/config.json") and isinstance(one, str):
        one, other = json.loads(one), json.loads(other)
    if isinstance(one, list) and all(isinstance(i, dict) and "name" in i for i in [*one, *other]):
        one, other = ({i["name"]: i for i in side} for side in (one, other))
    elif isinstance(one, list) and len(one) == len(other):
        one, other = (dict(enumerate(side)) for side in (one, other))
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return [] if one == other else [path]
    absent = object()
    return [
        found
        for key in sorted(one.keys() | other.keys())
        for found in differences(one.get(key, absent), other.get(key, absent), f"{path}/{key}")
    ]


def arm_differences(one, other):
    pairs = zip(documents(one, Bindings.placeholders()), documents(other, Bindings.placeholders()), strict=True)
    return [found for a, b in pairs for found in differences(a, b, a["kind"])]


def test_two_arms_of_an_experiment_differ_only_in_what_may_vary():
    found = arm_differences(*arms_of("g6e12xl-4x4-efa1", "g6e12xl-4x4-tcp"))
    assert [path for path in found if not MAY_VARY.fullmatch(path)] == []
    assert any(path.endswith("vpc.amazonaws.com/efa") for path in found)


def test_what_must_be_equal_is_seen_when_it_differs():
    one = planned("g6e12xl-4x4-efa1")
    other = planned("g6e12xl-4x4-tcp", seed=8, platform={"image": {"base": SEED_IMAGE}})
    found = {path for path in arm_differences(one, other) if not MAY_VARY.fullmatch(path)}
    assert any(path.endswith("config.json/seed") for path in found)
    assert any(path.endswith("trainer/image") for path in found)
