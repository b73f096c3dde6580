"""Charts from their registries, or from a folder."""

from tests.pulumi_engine import read_stack, registered, run


def test_charts_of_a_repository_name_it_and_oci_charts_name_themselves():
    nvidia = registered("dev").one("Release", "nvidia-device-plugin").inputs
    assert (nvidia["chart"], nvidia["version"]) == ("nvidia-device-plugin", "0.20.0")
    assert nvidia["repositoryOpts"] == {"repo": "https://nvidia.github.io/k8s-device-plugin"}


def test_helm_has_ten_minutes():
    assert {r.inputs["timeout"] for r in registered("dev").of("Release")} == {600}


def test_a_folder_of_charts_replaces_every_registry(tmp_path):
    graph = run(read_stack("dev").with_values(charts=str(tmp_path)))
    releases = {r.name: r.inputs for r in graph.of("Release")}
    assert {r["chart"] for r in releases.values()} == {
        str(tmp_path / name)
        for name in (
            "karpenter-crd", "karpenter", "nvidia-device-plugin", "aws-efa-k8s-device-plugin", "kubeflow-trainer"
        )
    }  # fmt: skip
    assert all("version" not in r and "repositoryOpts" not in r for r in releases.values())
