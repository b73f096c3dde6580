"""RULEs of Karpenter's installation."""

import json


def test_crds_have_their_own_release_and_the_main_chart_skips_them(dev):
    crds, main = dev.one("Release", "karpenter-crd").inputs, dev.one("Release", "karpenter").inputs
    assert crds["chart"] == "oci://public.ecr.aws/karpenter/karpenter-crd"
    assert main["chart"] == "oci://public.ecr.aws/karpenter/karpenter"
    assert crds["version"] == main["version"]
    assert main["skipCrds"] is True
    assert crds["skipCrds"] is False
    assert "repositoryOpts" not in main


def test_the_controller_knows_its_cluster_and_its_queue(dev):
    settings = dev.one("Release", "karpenter").inputs["values"]["settings"]
    assert settings == {"clusterName": "topolab-dev", "interruptionQueue": "topolab-dev"}


def test_the_controller_is_told_its_region_and_asks_no_metadata_for_it(dev):
    controller = dev.one("Release", "karpenter").inputs["values"]["controller"]
    assert controller["env"] == [{"name": "AWS_REGION", "value": "us-east-1"}]


def test_the_controller_gets_its_rights_by_pod_identity_before_its_pods_start(dev):
    association = dev.one("PodIdentityAssociation", "controller")
    assert association.inputs["namespace"] == "kube-system"
    assert association.inputs["serviceAccount"] == "karpenter"
    assert association.urn in dev.one("Release", "karpenter").dependencies
    assert dev.outlives(dev.one("Addon", "eks-pod-identity-agent"), dev.one("Release", "karpenter"))


def test_its_nodes_may_join_by_an_entry_of_their_own_role(dev):
    entry = dev.one("AccessEntry")
    assert entry.inputs["type"] == "EC2_LINUX"
    assert dev.one("Role", "gpu-node-role").urn in entry.dependencies
    assert dev.outlives(entry, dev.one("NodePool"))


def test_the_queue_is_short_lived_encrypted_and_fed_by_five_rules(dev):
    queue = dev.one("Queue").inputs
    assert queue["messageRetentionSeconds"] == 300
    assert queue["sqsManagedSseEnabled"] is True
    assert len(dev.of("EventRule")) == len(dev.of("EventTarget")) == 5
    assert all(t.inputs["arn"] == "arn:aws:sqs:us-east-1:123456789012:interruptions" for t in dev.of("EventTarget"))


def test_the_role_that_may_be_passed_is_the_one_that_nodes_get(dev):
    document = json.loads(dev.one("Policy", "iam-integration").inputs["policy"])
    passing = document["Statement"][0]
    role = dev.one("Role", "gpu-node-role").inputs["name"]
    assert passing["Resource"] == [f"arn:aws:iam::123456789012:role/{role}"]


def test_each_policy_is_attached_to_the_controllers_role(dev):
    for policy in dev.of("Policy"):
        attachment = dev.one("RolePolicyAttachment", policy.name)
        assert policy.urn in attachment.dependencies
        assert dev.one("Role", "controller").urn in attachment.dependencies
