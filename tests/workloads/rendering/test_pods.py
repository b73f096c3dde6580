"""Pods as the controllers make them of a TrainJob and its runtime.

What is expected here was read in the controllers' sources; that they really do so, the end-to-end tests show.
"""

import copy

import pytest

from tests.plan_factory import planned, rendered
from workloads.rendering.pods import LIVE_ONLY, pods


def pair(name="g6e12xl-4x4-efa1"):
    by_kind = rendered(planned(name))
    return copy.deepcopy(by_kind["TrainJob"]), copy.deepcopy(by_kind["ClusterTrainingRuntime"])


def replicated_job(runtime):
    return runtime["spec"]["template"]["spec"]["replicatedJobs"][0]


def node(pod):
    (container,) = pod["spec"]["containers"]
    return container


def variables(container):
    return {v["name"]: v.get("value", v.get("valueFrom")) for v in container["env"]}


def test_there_is_one_pod_for_each_index_with_names_that_dns_can_hold():
    made = pods(*pair("g6e8xl-16x1-efa1"))
    assert [p["spec"]["hostname"] for p in made] == [f"g6e8xl-16x1-efa1-1-node-0-{i}" for i in range(16)]
    assert all(p["metadata"]["name"].startswith(f"{p['spec']['hostname']}-") for p in made)
    assert max(len(p["metadata"]["name"]) for p in made) <= 63
    assert len({p["metadata"]["name"] for p in made}) == 16


def test_every_pod_finds_the_first_one_by_its_host_name():
    made = pods(*pair())
    first = f"{made[0]['spec']['hostname']}.{made[0]['spec']['subdomain']}"
    assert {variables(node(p))["PET_MASTER_ADDR"] for p in made} == {first}


def test_torchruns_variables_follow_the_jobs_own():
    job, runtime = pair()
    own = [v["name"] for v in job["spec"]["trainer"]["env"]]
    names = [v["name"] for v in node(pods(job, runtime)[1])["env"]]
    added = ["PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"]
    assert names == [*own, *added, "JOB_COMPLETION_INDEX"]
    found = variables(node(pods(job, runtime)[1]))
    assert (found["PET_NNODES"], found["PET_NPROC_PER_NODE"], found["PET_MASTER_PORT"]) == ("4", "4", "29500")


def test_the_rank_of_a_node_is_its_completion_index():
    for index, pod in enumerate(pods(*pair())):
        key = "batch.kubernetes.io/job-completion-index"
        assert pod["metadata"]["annotations"][key] == pod["metadata"]["labels"][key] == str(index)
        rank = variables(node(pod))["PET_NODE_RANK"]
        assert rank == {"fieldRef": {"fieldPath": f"metadata.annotations['{key}']"}}


def test_a_variable_of_the_runtime_keeps_its_place_and_takes_the_jobs_value():
    job, runtime = pair()
    container = replicated_job(runtime)["template"]["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "NCCL_DEBUG", "value": "WARN"}, {"name": "ONLY_HERE", "value": "1"}]
    env = node(pods(job, runtime)[0])["env"]
    assert env[:2] == [{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "ONLY_HERE", "value": "1"}]
    assert len({v["name"] for v in env}) == len(env)


def test_resources_merge_key_by_key():
    job, runtime = pair()
    container = replicated_job(runtime)["template"]["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "1", "ephemeral-storage": "10Gi"}}
    asked = node(pods(job, runtime)[0])["resources"]
    wanted = job["spec"]["trainer"]["resourcesPerNode"]
    assert asked["requests"] == {**wanted["requests"], "ephemeral-storage": "10Gi"}
    assert asked["limits"] == wanted["limits"]


def test_init_containers_get_the_index_and_nothing_of_torchrun():
    first = pods(*pair())[0]
    assert [c["name"] for c in first["spec"]["initContainers"]] == ["wheels", "check"]
    for container in first["spec"]["initContainers"]:
        assert container["env"][-1]["name"] == "JOB_COMPLETION_INDEX"
        assert not any(v["name"].startswith("PET_") for v in container["env"])


def test_labels_select_the_pods_of_a_job():
    metadata = pods(*pair())[2]["metadata"]
    assert metadata["namespace"] == "topolab"
    assert metadata["labels"]["jobset.sigs.k8s.io/jobset-name"] == "g6e12xl-4x4-efa1-1"
    assert metadata["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] == "node"
    assert metadata["labels"]["batch.kubernetes.io/job-name"] == "g6e12xl-4x4-efa1-1-node-0"
    assert metadata["labels"]["topolab.dev/topology"] == "g6e12xl-4x4-efa1"
    assert metadata["annotations"]["karpenter.sh/do-not-disrupt"] == "true"
    assert metadata["labels"]["jobset.sigs.k8s.io/priority"] == "0"
    # sha1 of `topolab/g6e12xl-4x4-efa1-1-node-0`, by sha1sum
    assert metadata["labels"]["jobset.sigs.k8s.io/job-key"] == "eda554bc53fb9cf9a024e46164792217c467fadf"


def test_everything_else_of_the_runtimes_pod_is_kept():
    job, runtime = pair("p4d24xl-2x8-efa4-hostnet")
    template = replicated_job(runtime)["template"]["spec"]["template"]["spec"]
    spec = pods(job, runtime)[0]["spec"]
    changed = {"containers", "initContainers", "hostname", "subdomain"}
    assert {k: v for k, v in spec.items() if k not in changed} == {
        k: v for k, v in template.items() if k not in changed
    }
    assert node(pods(job, runtime)[0])["volumeMounts"] == template["containers"][0]["volumeMounts"]


def test_a_local_pod_keeps_the_runtimes_image():
    assert node(pods(*pair("cpu-2x1-tcp"))[0])["image"] == "local/python"


def test_what_only_a_live_controller_knows_stands_in_no_pod():
    for pod in pods(*pair()):
        for path in LIVE_ONLY:
            inner = pod
            for key in path[:-1]:
                inner = inner[key]
            assert path[-1] not in inner or path == ("metadata", "name")


def test_neither_the_job_nor_the_runtime_is_changed():
    job, runtime = pair()
    before = copy.deepcopy((job, runtime))
    made = pods(job, runtime)
    made[0]["spec"]["volumes"].clear()
    made[0]["spec"]["containers"][0]["env"].clear()
    assert (job, runtime) == before
    assert made[1]["spec"]["volumes"]
    assert node(made[1])["env"]


def test_a_runtime_that_the_job_does_not_name_is_refused():
    job, _ = pair()
    with pytest.raises(ValueError, match="names the runtime g6e12xl-4x4-efa1, not cpu-2x1-tcp"):
        pods(job, pair("cpu-2x1-tcp")[1])


@pytest.mark.parametrize("field", ["runtimePatches", "initializer"])
def test_what_is_not_merged_is_refused(field):
    job, runtime = pair()
    job["spec"][field] = [{}]
    with pytest.raises(ValueError, match=rf"spec\.{field} isn't merged"):
        pods(job, runtime)


def test_a_runtime_without_the_ancestor_label_is_refused():
    job, runtime = pair()
    del replicated_job(runtime)["template"]["metadata"]
    with pytest.raises(ValueError, match="trainjob-ancestor-step: trainer"):
        pods(job, runtime)


def test_a_runtime_of_several_jobs_is_refused():
    job, runtime = pair()
    runtime["spec"]["template"]["spec"]["replicatedJobs"].append({"name": "dataset-initializer"})
    with pytest.raises(ValueError, match="one replicated job `node`"):
        pods(job, runtime)
