"""RULEs of FSx for Lustre."""

import pytest

from tests.pulumi_engine import registered


@pytest.mark.parametrize(("name", "kind"), [("scratch", "SCRATCH_2"), ("kept", "PERSISTENT_2")])
def test_the_server_version_is_stated_and_the_system_stands_with_the_gpu_nodes(name, kind):
    system = registered(name).one("LustreFileSystem").inputs
    assert system["fileSystemTypeVersion"] == "2.15"
    assert system["deploymentType"] == kind
    assert system["subnetIds"] == "gpu-private-0a1b2c"
    assert system["storageCapacity"] == 1200


def test_scratch_asks_for_nothing_that_only_persistent_storage_takes():
    scratch, persistent = (registered(n).one("LustreFileSystem").inputs for n in ("scratch", "kept"))
    assert {"perUnitStorageThroughput", "automaticBackupRetentionDays"} & scratch.keys() == set()
    assert persistent["perUnitStorageThroughput"] == 250
    assert persistent["automaticBackupRetentionDays"] == 0


def test_it_uses_the_clusters_own_security_group():
    assert registered("scratch").one("LustreFileSystem").inputs["securityGroupIds"] == ["sg-topolab-scratch"]
    assert registered("scratch").of("SecurityGroup") == []


def test_a_kept_system_has_a_group_that_outlives_the_cluster_and_opens_lustres_ports():
    graph = registered("kept")
    group = graph.one("SecurityGroup")
    assert group.retained
    assert graph.one("LustreFileSystem").inputs["securityGroupIds"] == ["lustre-0a1b2c"]
    assert [(r["fromPort"], r["toPort"]) for r in group.inputs["ingress"]] == [(988, 988), (1018, 1023)]
    assert graph.one("eks:index:Cluster").urn not in group.dependencies
    assert all("securityGroups" not in rule for rule in group.inputs["ingress"])


def test_the_volume_is_static_and_names_the_system():
    volume = registered("scratch").one("PersistentVolume").inputs["spec"]
    assert volume["csi"] == {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": "lustre-0a1b2c",
        "volumeAttributes": {"dnsname": "lustre.fsx", "mountname": "fsx"},
    }


def test_without_storage_there_is_no_driver():
    assert registered("dev").of("Addon", "aws-fsx-csi-driver") == []
