"""Entries, access policies and Pod Identity of a cluster."""

import pytest

from tests.e2e.cloud.ground import ACCOUNT

pytestmark = pytest.mark.e2e


def test_entries_are_of_principals_that_exist_and_once(ground, refused):
    ground.up()
    entry = {"clusterName": "lab", "principalArn": f"{ACCOUNT}:role/node", "type": "EC2_LINUX"}
    ground.eks.create_access_entry(**entry)

    assert refused(ground.eks.create_access_entry, **entry) == "ResourceInUseException"
    nobody = {**entry, "principalArn": f"{ACCOUNT}:role/nobody"}
    assert refused(ground.eks.create_access_entry, **nobody) == "InvalidParameterException"
    named = {**entry, "principalArn": f"{ACCOUNT}:role/cluster", "username": "x"}
    assert refused(ground.eks.create_access_entry, **named) == "InvalidParameterException"


def test_entries_need_a_cluster_that_asks_the_api(ground, refused):
    ground.eks.create_cluster(**ground.cluster(accessConfig={"authenticationMode": "CONFIG_MAP"}))
    entry = {"clusterName": "lab", "principalArn": f"{ACCOUNT}:role/node", "type": "EC2_LINUX"}
    assert refused(ground.eks.create_access_entry, **entry) == "InvalidRequestException"


def test_access_policies_are_eks_own_and_for_people(ground, refused):
    ground.up()
    principal = f"{ACCOUNT}:role/cluster"
    ground.eks.create_access_entry(clusterName="lab", principalArn=principal)
    admin = {
        "clusterName": "lab",
        "principalArn": principal,
        "policyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
        "accessScope": {"type": "cluster"},
    }
    ground.eks.associate_access_policy(**admin)
    listed = ground.eks.list_associated_access_policies(clusterName="lab", principalArn=principal)
    assert [one["policyArn"] for one in listed["associatedAccessPolicies"]] == [admin["policyArn"]]

    other = {**admin, "policyArn": "arn:aws:iam::aws:policy/AdministratorAccess"}
    assert refused(ground.eks.associate_access_policy, **other) == "InvalidParameterException"
    node = f"{ACCOUNT}:role/node"
    ground.eks.create_access_entry(clusterName="lab", principalArn=node, type="EC2_LINUX")
    assert refused(ground.eks.associate_access_policy, **{**admin, "principalArn": node}) == "InvalidRequestException"


def test_a_service_account_has_one_role(ground, refused):
    ground.up()
    wanted = {
        "clusterName": "lab",
        "namespace": "kube-system",
        "serviceAccount": "karpenter",
        "roleArn": f"{ACCOUNT}:role/node",
    }
    made = ground.eks.create_pod_identity_association(**wanted)["association"]
    assert refused(ground.eks.create_pod_identity_association, **wanted) == "ResourceInUseException"
    nobody = {**wanted, "serviceAccount": "other", "roleArn": f"{ACCOUNT}:role/nobody"}
    assert refused(ground.eks.create_pod_identity_association, **nobody) == "InvalidParameterException"

    listed = ground.eks.list_pod_identity_associations(
        clusterName="lab", namespace="kube-system", serviceAccount="karpenter"
    )["associations"]
    assert [one["associationId"] for one in listed] == [made["associationId"]]
    ground.eks.delete_pod_identity_association(clusterName="lab", associationId=made["associationId"])
    gone = {"clusterName": "lab", "associationId": made["associationId"]}
    assert refused(ground.eks.describe_pod_identity_association, **gone) == "ResourceNotFoundException"
