"""EKS: who may do what in a cluster: rows of the table."""

from typing import ClassVar

from tests.e2e.providers.aws.cloud import Cloud, gone_is_fine
from tests.e2e.providers.aws.eks_calls import GONE, change_tags, found
from tests.e2e.providers.aws.kinds import TEXTS, Inputs, Kind
from tests.e2e.providers.values import Properties


class AccessEntry(Kind):
    TYPE = "aws:eks/accessEntry:AccessEntry"
    INPUTS: ClassVar[Inputs] = {
        "clusterName": str,
        "kubernetesGroups": [str],
        "principalArn": str,
        "tags": TEXTS,
        "type": str,
        "userName": str,
    }
    REQUIRED = ("clusterName", "principalArn")
    REPLACE = ("clusterName", "principalArn", "type")
    DEFAULTS: ClassVar[Properties] = {"type": "STANDARD"}
    COMPUTED = ("accessEntryArn", "createdAt", "kubernetesGroups", "modifiedAt", "tagsAll", "userName")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        names = {"kubernetesGroups": "kubernetesGroups", "tags": "tags", "username": "userName"}
        cloud.eks.create_access_entry(
            clusterName=inputs["clusterName"],
            principalArn=inputs["principalArn"],
            type=inputs["type"],
            **{api: inputs[name] for api, name in names.items() if name in inputs},
        )
        return f"{inputs['clusterName']}:{inputs['principalArn']}"

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        cluster, _, principal = identifier.partition(":")
        entry = found(
            lambda: cloud.eks.describe_access_entry(clusterName=cluster, principalArn=principal)["accessEntry"]
        )
        if entry is None:
            return None
        return {
            "accessEntryArn": entry["accessEntryArn"],
            "clusterName": cluster,
            "createdAt": str(entry.get("createdAt")),
            "kubernetesGroups": entry.get("kubernetesGroups") or [],
            "modifiedAt": str(entry.get("modifiedAt")),
            "principalArn": principal,
            "tags": entry.get("tags") or {},
            "type": entry["type"],
            "userName": entry.get("username"),
        }

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        cluster, _, principal = identifier.partition(":")
        names = {"kubernetesGroups": "kubernetesGroups", "username": "userName"}
        changed = {api: new[name] for api, name in names.items() if name in new and old.get(name) != new[name]}
        if changed:
            cloud.eks.update_access_entry(clusterName=cluster, principalArn=principal, **changed)
        entry = cloud.eks.describe_access_entry(clusterName=cluster, principalArn=principal)["accessEntry"]
        change_tags(cloud, entry["accessEntryArn"], old, new)

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs, free_s
        cluster, _, principal = identifier.partition(":")
        with gone_is_fine(GONE):
            cloud.eks.delete_access_entry(clusterName=cluster, principalArn=principal)


class AccessPolicyAssociation(Kind):
    TYPE = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
    INPUTS: ClassVar[Inputs] = {
        "accessScope": {"namespaces": [str], "type": str},
        "clusterName": str,
        "policyArn": str,
        "principalArn": str,
    }
    REQUIRED = ("accessScope", "clusterName", "policyArn", "principalArn")
    REPLACE = ("accessScope", "clusterName", "policyArn", "principalArn")
    COMPUTED = ("associatedAt", "modifiedAt")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        cloud.eks.associate_access_policy(
            **{name: inputs[name] for name in ("accessScope", "clusterName", "policyArn", "principalArn")}
        )
        return f"{inputs['clusterName']}#{inputs['principalArn']}#{inputs['policyArn']}"

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        cluster, principal, policy = identifier.split("#")
        listed = found(lambda: cloud.eks.list_associated_access_policies(clusterName=cluster, principalArn=principal))
        for one in (listed or {}).get("associatedAccessPolicies", []):
            if one["policyArn"] == policy:
                scope = {name: value for name, value in one["accessScope"].items() if value}
                keys = {"accessScope": scope, "clusterName": cluster, "policyArn": policy, "principalArn": principal}
                return {**keys, "associatedAt": str(one["associatedAt"]), "modifiedAt": str(one["modifiedAt"])}
        return None

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs, free_s
        cluster, principal, policy = identifier.split("#")
        with gone_is_fine(GONE):
            cloud.eks.disassociate_access_policy(clusterName=cluster, principalArn=principal, policyArn=policy)


class PodIdentityAssociation(Kind):
    TYPE = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
    INPUTS: ClassVar[Inputs] = {
        "clusterName": str,
        "namespace": str,
        "roleArn": str,
        "serviceAccount": str,
        "tags": TEXTS,
    }
    REQUIRED = ("clusterName", "namespace", "roleArn", "serviceAccount")
    REPLACE = ("clusterName", "namespace", "serviceAccount")
    COMPUTED = ("associationArn", "associationId", "tagsAll")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        made = cloud.eks.create_pod_identity_association(
            **{name: inputs[name] for name in self.REQUIRED},
            **({"tags": inputs["tags"]} if inputs.get("tags") else {}),
        )
        return f"{inputs['clusterName']}:{made['association']['associationId']}"

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        cluster, _, association = identifier.partition(":")
        entry = found(
            lambda: cloud.eks.describe_pod_identity_association(clusterName=cluster, associationId=association)
        )
        if entry is None:
            return None
        one = entry["association"]
        names = ("associationArn", "associationId", "clusterName", "namespace", "roleArn", "serviceAccount")
        return {**{name: one[name] for name in names}, "tags": one.get("tags") or {}}

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        cluster, _, association = identifier.partition(":")
        if old.get("roleArn") != new["roleArn"]:
            cloud.eks.update_pod_identity_association(
                clusterName=cluster, associationId=association, roleArn=new["roleArn"]
            )
        arn = cloud.arn("eks", f"podidentityassociation/{cluster}/{association}")
        change_tags(cloud, arn, old, new)

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs, free_s
        cluster, _, association = identifier.partition(":")
        with gone_is_fine(GONE):
            cloud.eks.delete_pod_identity_association(clusterName=cluster, associationId=association)
