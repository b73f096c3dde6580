"""RULEs of the run: what replaces it, and what never stands in it."""

from infra.train_job import FINALIZERS_S
from tests.pulumi_engine import TOKEN, leaves, read_stack, registered, run


def test_a_changed_job_is_another_one_and_the_old_one_goes_first(dev):
    assert dev.one("TrainJob").replace_on_changes == ("spec",)
    assert dev.one("TrainJob").delete_before_replace


def test_another_config_is_another_run_though_the_job_says_the_same(dev):
    more = run(read_stack("dev").with_values(run={"steps": 40})).one("TrainJob")
    assert more.inputs["spec"] == dev.one("TrainJob").inputs["spec"]
    assert more.replacement_trigger != dev.one("TrainJob").replacement_trigger


def test_the_same_stack_again_replaces_nothing(dev):
    again = run(read_stack("dev")).one("TrainJob")
    assert again.replacement_trigger == dev.one("TrainJob").replacement_trigger
    assert again.inputs == dev.one("TrainJob").inputs


def test_a_new_attempt_is_a_new_job(dev):
    again = run(read_stack("dev").with_values(run={"attempt": 2})).one("TrainJob")
    assert again.inputs["metadata"]["name"] == "g6e8xl-2x1-efa1-2"
    assert again.urn == dev.one("TrainJob").urn


def test_another_topology_replaces_what_the_topology_owns_and_nothing_else(dev):
    other = run(read_stack("dev").with_values(topology="g6e8xl-2x1-tcp"))
    inputs = {r.urn: r.inputs for r in dev.resources}
    changed = {r.kind for r in other.resources if inputs.get(r.urn) != r.inputs}
    assert changed == {"TrainJob", "ClusterTrainingRuntime", "ConfigMap"}
    assert {r.urn for r in other.resources} == set(inputs)


def test_pulumi_up_does_not_wait_for_the_training(dev):
    annotations = dev.one("TrainJob").inputs["metadata"].get("annotations", {})
    assert "pulumi.com/waitFor" not in annotations


def test_a_job_is_given_the_time_that_its_pods_take_to_end(dev):
    for graph in (dev, registered("p4d24xl-4x1-tcp")):
        runtime = graph.one("ClusterTrainingRuntime").inputs["spec"]["template"]["spec"]["replicatedJobs"][0]
        grace = runtime["template"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        assert graph.one("TrainJob").delete_timeout == f"{int(grace) + FINALIZERS_S}s"


def test_no_job_has_a_ttl_and_each_has_a_deadline(dev):
    assert dev.one("TrainJob").inputs["spec"]["activeDeadlineSeconds"] == 120 * 60
    assert "ttlSecondsAfterFinished" not in str(dev.one("ClusterTrainingRuntime").inputs)


def test_the_token_reaches_the_pods_by_reference():
    graph = registered("gated")
    secret = graph.one("kubernetes:core/v1:Secret").inputs
    env = graph.one("TrainJob").inputs["spec"]["trainer"]["env"]
    (token,) = [e for e in env if e["name"] == "HF_TOKEN"]
    reference = token["valueFrom"]["secretKeyRef"]
    assert reference["name"] == secret["metadata"]["name"]
    assert secret["stringData"][reference["key"]] == TOKEN
    assert secret["metadata"]["namespace"] == "topolab"
    assert graph.outlives(graph.one("kubernetes:core/v1:Secret"), graph.one("TrainJob"))


def test_documents_are_placed_as_they_were_rendered(dev):
    config = dev.one("ConfigMap", "configmap-config").inputs
    assert config["metadata"]["name"] == "g6e8xl-2x1-efa1-config"
    assert '"arm": "g6e8xl-2x1-efa1"' in config["data"]["config.json"]
    assert dev.one("ServiceAccount").inputs["automountServiceAccountToken"] is False
    assert not any("${" in str(leaf) for leaf in leaves(dev.one("EC2NodeClass").inputs))


def test_the_trainers_code_fits_a_config_map(dev):
    data = dev.one("ConfigMap", "configmap-code").inputs["data"]
    assert "loop.py" in data
    assert sum(len(text.encode()) for text in data.values()) < 2**20
