"""A local machine: a cluster that is there already."""

import pulumi
import pytest

from tests.pulumi_engine import StackFile, run


def local(**config: object) -> StackFile:
    return StackFile(stack="local", config={"topolab:topology": "cpu-2x1-tcp", "topolab:run": RUN, **config})


RUN = {"model": "tiny", "globalBatchTokens": 4096, "sequenceLength": 256}


def test_nothing_of_aws_is_made_or_asked(local_machine):
    assert [r.urn for r in local_machine.resources if r.type.startswith(("aws:", "eks:", "pulumi:providers:aws"))] == []
    assert local_machine.invokes == []


def test_the_pods_ask_for_no_pool_and_no_node_of_ours(local_machine):
    assert local_machine.of("NodePool") == local_machine.of("EC2NodeClass") == []


def test_records_go_to_a_folder_of_the_node_that_the_output_names(local_machine):
    volume = local_machine.one("PersistentVolume").inputs["spec"]
    assert volume["hostPath"]["path"] == "/var/tmp/topolab-local"
    assert local_machine.outputs["records"] == "file:///var/tmp/topolab-local"


def test_the_folder_can_be_named():
    graph = run(local(**{"topolab:platform": {"records": "file:///srv/records"}}))
    assert graph.outputs["records"] == "file:///srv/records"
    assert graph.one("PersistentVolume").inputs["spec"]["hostPath"]["path"] == "/srv/records"


def test_the_kubeconfig_is_the_ambient_one_unless_the_stack_names_one(local_machine):
    assert "kubeconfig" not in local_machine.one("pulumi:providers:kubernetes").inputs
    named = run(local(**{"kubernetes:kubeconfig": "/some/where", "kubernetes:context": "lab"}))
    provider = named.one("pulumi:providers:kubernetes").inputs
    assert (provider["kubeconfig"], provider["context"]) == ("/some/where", "lab")


def test_no_kubeconfig_is_handed_out(local_machine):
    assert "kubeconfig" not in local_machine.outputs


def test_a_rate_that_no_cluster_can_dial_is_refused():
    with pytest.raises(pulumi.RunError, match=r"cpu-2x1-tcp-50mbit.*only the lab can dial"):
        run(local(**{"topolab:topology": "cpu-2x1-tcp-50mbit"}))


def test_gpus_of_a_local_machine_are_asked_for_without_an_instance_type():
    graph = run(local(**{"topolab:topology": "h200x4-1x4-local", "topolab:run": {"model": "llama-3.2-1b"}}))
    limits = graph.one("TrainJob").inputs["spec"]["trainer"]["resourcesPerNode"]["limits"]
    assert limits["nvidia.com/gpu"] == "4"
    assert graph.of("NodePool") == []
