"""Addresses, NAT, endpoints, placement and security groups: rows of the table."""

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.e2e.providers.aws.cloud import Cloud, gone_is_fine
from tests.e2e.providers.aws.ec2 import DEPENDED_ON, Ec2Kind, change_tags, first
from tests.e2e.providers.aws.kinds import TEXTS, Inputs, Kind, tag_list, tag_map
from tests.e2e.providers.values import Properties

_NO_GROUP = "InvalidPlacementGroup.Unknown"


class Eip(Ec2Kind):
    TYPE = "aws:ec2/eip:Eip"
    TAGGED_AS = "elastic-ip"
    ABSENT = "InvalidAllocationID.NotFound"
    INPUTS: ClassVar[Inputs] = {"domain": str, "tags": TEXTS}
    REPLACE = ("domain",)
    DEFAULTS: ClassVar[Properties] = {"domain": "vpc"}
    COMPUTED = ("allocationId", "arn", "publicIp", "tagsAll")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        return str(cloud.ec2.allocate_address(Domain=inputs["domain"], **self._tags(inputs))["AllocationId"])

    def described(self, cloud: Cloud, identifier: str) -> list[dict[str, Any]]:
        return list(cloud.ec2.describe_addresses(AllocationIds=[identifier])["Addresses"])

    def shown(self, cloud: Cloud, identifier: str, found: Mapping[str, Any]) -> Properties:
        return {
            "allocationId": identifier,
            "arn": cloud.arn("ec2", f"elastic-ip/{identifier}"),
            "domain": found["Domain"],
            "publicIp": found["PublicIp"],
        }

    def deleted(self, cloud: Cloud, identifier: str) -> None:
        cloud.ec2.release_address(AllocationId=identifier)


class NatGateway(Ec2Kind):
    TYPE = "aws:ec2/natGateway:NatGateway"
    TAGGED_AS = "natgateway"
    ABSENT = "NatGatewayNotFound"
    INPUTS: ClassVar[Inputs] = {"allocationId": str, "connectivityType": str, "subnetId": str, "tags": TEXTS}
    REQUIRED = ("subnetId",)
    REPLACE = ("allocationId", "connectivityType", "subnetId")
    DEFAULTS: ClassVar[Properties] = {"connectivityType": "public"}
    COMPUTED = ("networkInterfaceId", "privateIp", "publicIp", "tagsAll")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        made = cloud.ec2.create_nat_gateway(
            AllocationId=inputs["allocationId"],
            ConnectivityType=inputs["connectivityType"],
            SubnetId=inputs["subnetId"],
            **self._tags(inputs),
        )
        return str(made["NatGateway"]["NatGatewayId"])

    def finish(self, cloud: Cloud, identifier: str, inputs: Properties, within_s: float) -> None:
        del inputs
        self.until_state(cloud, identifier, "available", within_s)

    def described(self, cloud: Cloud, identifier: str) -> list[dict[str, Any]]:
        found = cloud.ec2.describe_nat_gateways(NatGatewayIds=[identifier])["NatGateways"]
        return [one for one in found if one["State"] not in ("deleting", "deleted")]

    def shown(self, cloud: Cloud, identifier: str, found: Mapping[str, Any]) -> Properties:
        del cloud, identifier
        addresses = found.get("NatGatewayAddresses") or [{}]
        return {
            "allocationId": addresses[0].get("AllocationId"),
            "connectivityType": found.get("ConnectivityType", "public"),
            "networkInterfaceId": addresses[0].get("NetworkInterfaceId"),
            "privateIp": addresses[0].get("PrivateIp"),
            "publicIp": addresses[0].get("PublicIp"),
            "subnetId": found["SubnetId"],
        }

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs, free_s
        with gone_is_fine(self.ABSENT):
            cloud.ec2.delete_nat_gateway(NatGatewayId=identifier)
        cloud.until(lambda: _deleted_nat(cloud, identifier), cloud.waits.gone_s, f"NAT gateway {identifier} to go")


class VpcEndpoint(Ec2Kind):
    TYPE = "aws:ec2/vpcEndpoint:VpcEndpoint"
    TAGGED_AS = "vpc-endpoint"
    ABSENT = "InvalidVpcEndpointId.NotFound"
    INPUTS: ClassVar[Inputs] = {
        "routeTableIds": [str],
        "serviceName": str,
        "tags": TEXTS,
        "vpcEndpointType": str,
        "vpcId": str,
    }
    REQUIRED = ("vpcId",)
    REPLACE = ("serviceName", "vpcEndpointType", "vpcId")
    DEFAULTS: ClassVar[Properties] = {"vpcEndpointType": "Gateway"}
    COMPUTED = ("arn", "ownerId", "state", "tagsAll")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        made = cloud.ec2.create_vpc_endpoint(
            VpcId=inputs["vpcId"],
            ServiceName=inputs["serviceName"],
            VpcEndpointType=inputs["vpcEndpointType"],
            RouteTableIds=inputs.get("routeTableIds", []),
            **self._tags(inputs),
        )
        return str(made["VpcEndpoint"]["VpcEndpointId"])

    def finish(self, cloud: Cloud, identifier: str, inputs: Properties, within_s: float) -> None:
        del inputs
        self.until_state(cloud, identifier, "available", within_s)

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        super().change(cloud, identifier, old, new)
        before, after = set(old.get("routeTableIds") or []), set(new.get("routeTableIds") or [])
        if before != after:
            cloud.ec2.modify_vpc_endpoint(
                VpcEndpointId=identifier,
                AddRouteTableIds=sorted(after - before),
                RemoveRouteTableIds=sorted(before - after),
            )

    def described(self, cloud: Cloud, identifier: str) -> list[dict[str, Any]]:
        found = cloud.ec2.describe_vpc_endpoints(VpcEndpointIds=[identifier])["VpcEndpoints"]
        return [one for one in found if one.get("State", "").lower() not in ("deleting", "deleted")]

    def shown(self, cloud: Cloud, identifier: str, found: Mapping[str, Any]) -> Properties:
        return {
            "arn": cloud.arn("ec2", f"vpc-endpoint/{identifier}"),
            "ownerId": found.get("OwnerId", cloud.account),
            "routeTableIds": list(found.get("RouteTableIds", [])),
            "serviceName": found["ServiceName"],
            "state": found["State"].lower(),
            "vpcEndpointType": found.get("VpcEndpointType"),
            "vpcId": found["VpcId"],
        }

    def deleted(self, cloud: Cloud, identifier: str) -> None:
        cloud.ec2.delete_vpc_endpoints(VpcEndpointIds=[identifier])


class PlacementGroup(Kind):
    TYPE = "aws:ec2/placementGroup:PlacementGroup"
    INPUTS: ClassVar[Inputs] = {"name": str, "strategy": str, "tags": TEXTS}
    REQUIRED = ("strategy",)
    REPLACE = ("name", "strategy")
    NAME = "name"
    COMPUTED = ("arn", "placementGroupId", "tagsAll")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        tags = tag_list(inputs.get("tags"))
        labelled = {"TagSpecifications": [{"ResourceType": "placement-group", "Tags": tags}]} if tags else {}
        cloud.ec2.create_placement_group(GroupName=inputs["name"], Strategy=inputs["strategy"], **labelled)
        return str(inputs["name"])

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        found = first(
            lambda: cloud.ec2.describe_placement_groups(GroupNames=[identifier])["PlacementGroups"], _NO_GROUP
        )
        if found is None:
            return None
        return {
            "arn": cloud.arn("ec2", f"placement-group/{identifier}"),
            "name": identifier,
            "placementGroupId": found.get("GroupId"),
            "strategy": found["Strategy"],
            "tags": tag_map(found.get("Tags")),
        }

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        found = cloud.ec2.describe_placement_groups(GroupNames=[identifier])["PlacementGroups"][0]
        change_tags(cloud, found["GroupId"], old, new)

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs
        with gone_is_fine(_NO_GROUP):
            cloud.once_free(lambda: cloud.ec2.delete_placement_group(GroupName=identifier), DEPENDED_ON, free_s)


_RULES = [{"cidrBlocks": [str], "description": str, "fromPort": int, "protocol": str, "toPort": int}]


class SecurityGroup(Ec2Kind):
    TYPE = "aws:ec2/securityGroup:SecurityGroup"
    TAGGED_AS = "security-group"
    ABSENT = "InvalidGroup.NotFound"
    INPUTS: ClassVar[Inputs] = {
        "description": str,
        "egress": _RULES,
        "ingress": _RULES,
        "name": str,
        "tags": TEXTS,
        "vpcId": str,
    }
    REPLACE = ("description", "name", "vpcId")
    DEFAULTS: ClassVar[Properties] = {"description": "Managed by Pulumi"}
    NAME = "name"
    COMPUTED = ("arn", "egress", "ingress", "ownerId", "tagsAll", "vpcId")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        made = cloud.ec2.create_security_group(
            GroupName=inputs["name"], Description=inputs["description"], VpcId=inputs["vpcId"], **self._tags(inputs)
        )
        return str(made["GroupId"])

    def finish(self, cloud: Cloud, identifier: str, inputs: Properties, within_s: float) -> None:
        del within_s
        live = self.live(cloud, identifier)
        assert live is not None
        # The program's rules are all there are: EC2's own "anything out" goes, as in the real provider.
        for way, allow, revoke in (
            ("ingress", cloud.ec2.authorize_security_group_ingress, cloud.ec2.revoke_security_group_ingress),
            ("egress", cloud.ec2.authorize_security_group_egress, cloud.ec2.revoke_security_group_egress),
        ):
            if way not in inputs:
                continue
            there, wanted = _keyed(live[way]), _keyed(inputs[way])
            if gone := [one for key, one in there.items() if key not in wanted]:
                revoke(GroupId=identifier, IpPermissions=[_permission(one) for one in gone])
            if new := [one for key, one in wanted.items() if key not in there]:
                allow(GroupId=identifier, IpPermissions=[_permission(one) for one in new])

    def described(self, cloud: Cloud, identifier: str) -> list[dict[str, Any]]:
        return list(cloud.ec2.describe_security_groups(GroupIds=[identifier])["SecurityGroups"])

    def shown(self, cloud: Cloud, identifier: str, found: Mapping[str, Any]) -> Properties:
        return {
            "arn": cloud.arn("ec2", f"security-group/{identifier}"),
            "description": found["Description"],
            "egress": [_rule(one) for one in found.get("IpPermissionsEgress", [])],
            "ingress": [_rule(one) for one in found.get("IpPermissions", [])],
            "name": found["GroupName"],
            "ownerId": found.get("OwnerId", cloud.account),
            "vpcId": found["VpcId"],
        }

    def deleted(self, cloud: Cloud, identifier: str) -> None:
        cloud.ec2.delete_security_group(GroupId=identifier)


def _deleted_nat(cloud: Cloud, identifier: str) -> bool:
    found = first(lambda: cloud.ec2.describe_nat_gateways(NatGatewayIds=[identifier])["NatGateways"], NatGateway.ABSENT)
    return found is None or found["State"] == "deleted"


def _permission(rule: Mapping[str, Any]) -> dict[str, Any]:
    ranges = [{"CidrIp": cidr} for cidr in rule.get("cidrBlocks", [])]
    ports = {} if rule["protocol"] == "-1" else {"FromPort": rule["fromPort"], "ToPort": rule["toPort"]}
    return {"IpProtocol": rule["protocol"], "IpRanges": ranges, **ports}


def _rule(permission: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "cidrBlocks": [one["CidrIp"] for one in permission.get("IpRanges", [])],
        "fromPort": permission.get("FromPort", 0),
        "protocol": permission["IpProtocol"],
        "toPort": permission.get("ToPort", 0),
    }


def _keyed(rules: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {
        (one["protocol"], one["fromPort"], one["toPort"], tuple(sorted(one.get("cidrBlocks", [])))): one
        for one in rules
    }
