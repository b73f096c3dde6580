"""RULEs of the device plugins."""

from tests.pulumi_engine import registered


def test_plugins_tolerate_every_taint_or_no_gpu_node_initialises(dev):
    for name in ("nvidia-device-plugin", "aws-efa-k8s-device-plugin"):
        assert dev.one("Release", name).inputs["values"]["tolerations"] == [{"operator": "Exists"}]


def test_feature_discovery_stays_off_because_the_pool_carries_its_label(dev):
    assert dev.one("Release", "nvidia-device-plugin").inputs["values"]["gfd"] == {"enabled": False}
    labels = dev.one("NodePool").inputs["spec"]["template"]["metadata"]["labels"]
    assert labels["nvidia.com/gpu.present"] == "true"


def test_the_efa_plugin_serves_tcp_arms_too_because_their_nodes_have_the_devices():
    graph = registered("g6e12xl-4x4-tcp")
    interfaces = graph.one("EC2NodeClass").inputs["spec"]["networkInterfaces"]
    assert [i["interfaceType"] for i in interfaces].count("efa-only") == 1
    assert graph.one("Release", "aws-efa-k8s-device-plugin").inputs["repositoryOpts"] == {
        "repo": "https://aws.github.io/eks-charts"
    }


def test_no_plugin_is_put_on_a_machine_that_is_not_ours():
    assert [r.name for r in registered("local").of("Release")] == ["kubeflow-trainer"]
