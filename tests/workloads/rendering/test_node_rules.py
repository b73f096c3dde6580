"""RULEs of nodes, pods and storage that no other test names: what is rendered for every arm on EC2."""

import json
import re

import pytest

from tests.plan_factory import planned, rendered
from workloads.catalogue.instances import INSTANCE_TYPES
from workloads.catalogue.topologies import NAMED_TOPOLOGIES, parse_topology
from workloads.catalogue.versions import GPU_AMI_ALIAS
from workloads.rendering.lint import lint

ON_EC2 = [row.name for row in NAMED_TOPOLOGIES if not parse_topology(row.name).machine.is_local]

HANDS_OFF = {
    # What the plugin or the kernel sets by itself; set by hand they cost speed, or hide the image's own libraries.
    "FI_PROVIDER", "FI_EFA_USE_DEVICE_RDMA", "FI_EFA_FORK_SAFE", "FI_EFA_SET_CUDA_SYNC_MEMOPS", "LD_LIBRARY_PATH",
    "NCCL_PROTO", "NCCL_BUFFSIZE", "NCCL_MIN_CHANNELS", "NCCL_TUNER_PLUGIN", "NCCL_TOPO_FILE",
}  # fmt: skip


@pytest.fixture(params=ON_EC2)
def arm(request):
    return planned(request.param)


def pool_of(plan):
    return rendered(plan)["NodePool"]["spec"]


def class_of(plan):
    return rendered(plan)["EC2NodeClass"]["spec"]


def pod_of(plan):
    job = rendered(plan)["ClusterTrainingRuntime"]["spec"]["template"]["spec"]["replicatedJobs"][0]
    return job["template"]["spec"]["template"]


def test_the_image_of_nodes_is_dated_and_stands_alone(arm):
    assert class_of(arm)["amiSelectorTerms"] == [{"alias": GPU_AMI_ALIAS}]
    assert re.fullmatch(r"al2023@v\d{8}", GPU_AMI_ALIAS)


def test_the_root_volume_holds_an_image_and_is_encrypted_and_goes_with_its_node(arm):
    (device,) = class_of(arm)["blockDeviceMappings"]
    volume = device["ebs"]
    assert (device["deviceName"], volume["encrypted"], volume["deleteOnTermination"]) == ("/dev/xvda", True, True)
    assert int(volume["volumeSize"].removesuffix("Gi")) >= 100


def test_nvme_is_the_kubelets_storage(arm):
    assert class_of(arm)["instanceStorePolicy"] == "RAID0"


def test_pods_of_gpu_nodes_reach_no_instance_metadata(arm):
    # Karpenter's default: tokens required, one hop. Whatever asks for the region in a pod must be told it.
    assert "metadataOptions" not in class_of(arm)


def test_no_node_asks_for_a_public_address_which_ec2_refuses_beside_several_interfaces(arm):
    assert class_of(arm)["associatePublicIPAddress"] is False


def test_a_node_lives_until_it_is_empty_and_no_age_ends_it(arm):
    assert pool_of(arm)["template"]["spec"]["expireAfter"] == "Never"
    disruption = pool_of(arm)["disruption"]
    assert disruption["consolidationPolicy"] == "WhenEmpty"
    assert disruption["consolidateAfter"] == "10m"


def test_a_running_pod_is_not_disturbed_and_a_drain_still_ends(arm):
    assert pod_of(arm)["metadata"]["annotations"] == {"karpenter.sh/do-not-disrupt": "true"}
    assert pool_of(arm)["template"]["spec"]["terminationGracePeriod"] == "30m"


def test_one_taint_with_the_value_that_node_feature_discovery_tolerates(arm):
    assert pool_of(arm)["template"]["spec"]["taints"] == [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    ]


def test_pods_ask_for_at_most_nine_tenths_of_what_karpenter_believes_a_node_has(arm):
    instance = arm.topology.machine.instance_type
    pods = arm.topology.pods_per_node
    assert arm.resources.memory_gib * 1024 * pods <= 0.9 * instance.allocatable_memory_mib
    assert arm.resources.cpu_millis * pods <= 0.9 * instance.allocatable_cpu_millis


def test_shared_memory_fits_in_the_pods_memory_which_it_counts_against(arm):
    assert arm.resources.shm_gib <= arm.resources.memory_gib / 2


def test_no_variable_does_what_the_plugin_does_better(arm):
    names = {one["name"] for one in rendered(arm)["TrainJob"]["spec"]["trainer"]["env"]}
    assert names & HANDS_OFF == set()
    assert not any(name.startswith("RDMAV_") for name in names)


def test_no_pod_mounts_a_device_of_its_host_by_hand(arm):
    assert "/dev/infiniband" not in json.dumps(pod_of(arm))
    assert "hostPath" not in json.dumps(pod_of(arm))


def test_the_runtime_asks_for_no_scheduler_that_is_not_installed(arm):
    spec = rendered(arm)["ClusterTrainingRuntime"]["spec"]
    assert "podGroupPolicy" not in spec
    assert "schedulerName" not in pod_of(arm)["spec"]


def test_the_runtime_leaves_the_masters_name_to_trainer(arm):
    # The address that is injected is made of the job's own name as subdomain.
    assert "network" not in rendered(arm)["ClusterTrainingRuntime"]["spec"]["template"]["spec"]


def test_the_job_patches_nothing_that_trainer_would_refuse_later(arm):
    job = rendered(arm)["TrainJob"]["spec"]
    assert {"runtimePatches", "podTemplateOverrides", "podSpecOverrides", "managedBy"} & job.keys() == set()
    assert type(job["trainer"]["numProcPerNode"]) is int


def test_torchrun_waits_longer_for_its_peers_than_nodes_lie_apart(arm):
    arguments = rendered(arm)["TrainJob"]["spec"]["trainer"]["args"]
    assert arguments[arguments.index("--rdzv-conf") + 1] == "timeout=1800"


def test_the_volume_is_flocked_retained_and_of_no_class():
    by_kind = rendered(planned("g6e12xl-4x4-efa1", platform={"storage": {"fsx": "scratch"}}))
    volume, claim = by_kind["PersistentVolume"]["spec"], by_kind["PersistentVolumeClaim"]["spec"]
    assert volume["mountOptions"] == ["flock", "noatime"]
    assert volume["accessModes"] == claim["accessModes"] == ["ReadWriteMany"]
    # Absent it would mean the cluster's default class, and a new volume.
    assert volume["storageClassName"] == claim["storageClassName"] == ""
    assert claim["volumeName"] == by_kind["PersistentVolume"]["metadata"]["name"]


def test_a_node_that_lacks_the_lustre_client_says_so_on_its_console():
    data = class_of(planned("g6e12xl-4x4-efa1", platform={"storage": {"fsx": "scratch"}}))["userData"]
    assert "dnf install -y lustre-client && modprobe lustre" in data
    assert "lustre client missing" in data


def test_every_instance_type_has_an_efa_device_a_card_but_single_card_ones_whose_device_shares_it():
    for one in INSTANCE_TYPES:
        assert one.efa_devices == one.network_cards, one.name
        assert one.network_gbps % one.network_cards == 0


def test_documents_of_every_arm_have_no_fault(arm):
    assert lint(list(rendered(arm).values())) == []
