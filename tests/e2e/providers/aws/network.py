"""VPC, subnets, internet gateway, route tables and routes: rows of the table."""

import zlib
from collections.abc import Mapping
from typing import Any, ClassVar

from tests.e2e.providers.aws.cloud import Cloud, gone_is_fine
from tests.e2e.providers.aws.ec2 import DEPENDED_ON, Ec2Kind, first
from tests.e2e.providers.aws.kinds import TEXTS, Inputs, Kind
from tests.e2e.providers.values import Properties


class Vpc(Ec2Kind):
    TYPE = "aws:ec2/vpc:Vpc"
    TAGGED_AS = "vpc"
    ABSENT = "InvalidVpcID.NotFound"
    INPUTS: ClassVar[Inputs] = {"cidrBlock": str, "enableDnsHostnames": bool, "enableDnsSupport": bool, "tags": TEXTS}
    REPLACE = ("cidrBlock",)
    DEFAULTS: ClassVar[Properties] = {"enableDnsSupport": True}
    COMPUTED = ("arn", "enableDnsHostnames", "ownerId", "tagsAll")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        return str(cloud.ec2.create_vpc(CidrBlock=inputs["cidrBlock"], **self._tags(inputs))["Vpc"]["VpcId"])

    def finish(self, cloud: Cloud, identifier: str, inputs: Properties, within_s: float) -> None:
        self.until_state(cloud, identifier, "available", within_s)
        for name in ("enableDnsSupport", "enableDnsHostnames"):
            if name in inputs:
                _set_dns(cloud, identifier, name, on=inputs[name])

    def described(self, cloud: Cloud, identifier: str) -> list[dict[str, Any]]:
        return list(cloud.ec2.describe_vpcs(VpcIds=[identifier])["Vpcs"])

    def shown(self, cloud: Cloud, identifier: str, found: Mapping[str, Any]) -> Properties:
        owner = found.get("OwnerId", cloud.account)
        return {
            "arn": cloud.arn("ec2", f"vpc/{identifier}"),
            "cidrBlock": found["CidrBlock"],
            "enableDnsHostnames": _dns(cloud, identifier, "enableDnsHostnames"),
            "enableDnsSupport": _dns(cloud, identifier, "enableDnsSupport"),
            "ownerId": owner,
        }

    def deleted(self, cloud: Cloud, identifier: str) -> None:
        cloud.ec2.delete_vpc(VpcId=identifier)


class Subnet(Ec2Kind):
    TYPE = "aws:ec2/subnet:Subnet"
    TAGGED_AS = "subnet"
    ABSENT = "InvalidSubnetID.NotFound"
    INPUTS: ClassVar[Inputs] = {
        "availabilityZone": str,
        "cidrBlock": str,
        "mapPublicIpOnLaunch": bool,
        "tags": TEXTS,
        "vpcId": str,
    }
    REQUIRED = ("vpcId",)
    REPLACE = ("availabilityZone", "cidrBlock", "vpcId")
    DEFAULTS: ClassVar[Properties] = {"mapPublicIpOnLaunch": False}
    COMPUTED = ("arn", "availabilityZoneId", "ownerId", "tagsAll")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        zone = {"AvailabilityZone": inputs["availabilityZone"]} if "availabilityZone" in inputs else {}
        made = cloud.ec2.create_subnet(
            VpcId=inputs["vpcId"], CidrBlock=inputs["cidrBlock"], **zone, **self._tags(inputs)
        )
        return str(made["Subnet"]["SubnetId"])

    def finish(self, cloud: Cloud, identifier: str, inputs: Properties, within_s: float) -> None:
        self.until_state(cloud, identifier, "available", within_s)
        if inputs["mapPublicIpOnLaunch"]:
            _map_addresses(cloud, identifier, on=True)

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        super().change(cloud, identifier, old, new)
        if old.get("mapPublicIpOnLaunch") != new["mapPublicIpOnLaunch"]:
            _map_addresses(cloud, identifier, on=new["mapPublicIpOnLaunch"])

    def described(self, cloud: Cloud, identifier: str) -> list[dict[str, Any]]:
        return list(cloud.ec2.describe_subnets(SubnetIds=[identifier])["Subnets"])

    def shown(self, cloud: Cloud, identifier: str, found: Mapping[str, Any]) -> Properties:
        return {
            "arn": found.get("SubnetArn") or cloud.arn("ec2", f"subnet/{identifier}"),
            "availabilityZone": found["AvailabilityZone"],
            "availabilityZoneId": found.get("AvailabilityZoneId"),
            "cidrBlock": found["CidrBlock"],
            "mapPublicIpOnLaunch": found["MapPublicIpOnLaunch"],
            "ownerId": found.get("OwnerId", cloud.account),
            "vpcId": found["VpcId"],
        }

    def deleted(self, cloud: Cloud, identifier: str) -> None:
        cloud.ec2.delete_subnet(SubnetId=identifier)


class InternetGateway(Ec2Kind):
    TYPE = "aws:ec2/internetGateway:InternetGateway"
    TAGGED_AS = "internet-gateway"
    ABSENT = "InvalidInternetGatewayID.NotFound"
    INPUTS: ClassVar[Inputs] = {"tags": TEXTS, "vpcId": str}
    COMPUTED = ("arn", "ownerId", "tagsAll")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        made = cloud.ec2.create_internet_gateway(**self._tags(inputs))
        return str(made["InternetGateway"]["InternetGatewayId"])

    def finish(self, cloud: Cloud, identifier: str, inputs: Properties, within_s: float) -> None:
        del within_s
        attached, wanted = (self.live(cloud, identifier) or {}).get("vpcId"), inputs.get("vpcId")
        if attached != wanted and attached:
            cloud.ec2.detach_internet_gateway(InternetGatewayId=identifier, VpcId=attached)
        if attached != wanted and wanted:
            cloud.ec2.attach_internet_gateway(InternetGatewayId=identifier, VpcId=wanted)

    def described(self, cloud: Cloud, identifier: str) -> list[dict[str, Any]]:
        return list(cloud.ec2.describe_internet_gateways(InternetGatewayIds=[identifier])["InternetGateways"])

    def shown(self, cloud: Cloud, identifier: str, found: Mapping[str, Any]) -> Properties:
        attached = [one["VpcId"] for one in found.get("Attachments", [])]
        return {
            "arn": cloud.arn("ec2", f"internet-gateway/{identifier}"),
            "ownerId": found.get("OwnerId", cloud.account),
            "vpcId": attached[0] if attached else None,
        }

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        live = self.live(cloud, identifier)
        attached = live and live["vpcId"]
        if attached:
            with gone_is_fine(self.ABSENT, "Gateway.NotAttached"):
                cloud.once_free(
                    lambda: cloud.ec2.detach_internet_gateway(InternetGatewayId=identifier, VpcId=attached),
                    DEPENDED_ON,
                    free_s,
                )
        super().remove(cloud, identifier, inputs, outputs, free_s)

    def deleted(self, cloud: Cloud, identifier: str) -> None:
        cloud.ec2.delete_internet_gateway(InternetGatewayId=identifier)


class RouteTable(Ec2Kind):
    TYPE = "aws:ec2/routeTable:RouteTable"
    TAGGED_AS = "route-table"
    ABSENT = "InvalidRouteTableID.NotFound"
    INPUTS: ClassVar[Inputs] = {"tags": TEXTS, "vpcId": str}
    REQUIRED = ("vpcId",)
    REPLACE = ("vpcId",)
    COMPUTED = ("arn", "ownerId", "tagsAll")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        made = cloud.ec2.create_route_table(VpcId=inputs["vpcId"], **self._tags(inputs))
        return str(made["RouteTable"]["RouteTableId"])

    def described(self, cloud: Cloud, identifier: str) -> list[dict[str, Any]]:
        return list(cloud.ec2.describe_route_tables(RouteTableIds=[identifier])["RouteTables"])

    def shown(self, cloud: Cloud, identifier: str, found: Mapping[str, Any]) -> Properties:
        arn = cloud.arn("ec2", f"route-table/{identifier}")
        return {"arn": arn, "ownerId": found.get("OwnerId", cloud.account), "vpcId": found["VpcId"]}

    def deleted(self, cloud: Cloud, identifier: str) -> None:
        cloud.ec2.delete_route_table(RouteTableId=identifier)


class Route(Kind):
    TYPE = "aws:ec2/route:Route"
    INPUTS: ClassVar[Inputs] = {"destinationCidrBlock": str, "gatewayId": str, "natGatewayId": str, "routeTableId": str}
    REQUIRED = ("routeTableId", "destinationCidrBlock")
    REPLACE = ("routeTableId", "destinationCidrBlock")
    COMPUTED = ("origin", "state")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        cloud.ec2.create_route(**_route(inputs))
        table, destination = inputs["routeTableId"], inputs["destinationCidrBlock"]
        return f"r-{table}{zlib.crc32(destination.encode())}_{destination}"

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        table, destination = _route_of(identifier)
        found = first(lambda: cloud.ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"], RouteTable.ABSENT)
        routes = [one for one in (found or {}).get("Routes", []) if one.get("DestinationCidrBlock") == destination]
        if not routes:
            return None
        return {
            "destinationCidrBlock": destination,
            "gatewayId": routes[0].get("GatewayId"),
            "natGatewayId": routes[0].get("NatGatewayId"),
            "origin": routes[0].get("Origin"),
            "routeTableId": table,
            "state": routes[0].get("State"),
        }

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        del identifier, old
        cloud.ec2.replace_route(**_route(new))

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs, free_s
        table, destination = _route_of(identifier)
        with gone_is_fine(RouteTable.ABSENT, "InvalidRoute.NotFound"):
            cloud.ec2.delete_route(RouteTableId=table, DestinationCidrBlock=destination)


class RouteTableAssociation(Kind):
    TYPE = "aws:ec2/routeTableAssociation:RouteTableAssociation"
    INPUTS: ClassVar[Inputs] = {"routeTableId": str, "subnetId": str}
    REQUIRED = ("routeTableId",)
    REPLACE = ("routeTableId", "subnetId")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        made = cloud.ec2.associate_route_table(RouteTableId=inputs["routeTableId"], SubnetId=inputs["subnetId"])
        return str(made["AssociationId"])

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        where = [{"Name": "association.route-table-association-id", "Values": [identifier]}]
        for table in cloud.ec2.describe_route_tables(Filters=where)["RouteTables"]:
            for one in table["Associations"]:
                if one["RouteTableAssociationId"] == identifier:
                    return {"routeTableId": table["RouteTableId"], "subnetId": one.get("SubnetId")}
        return None

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs, free_s
        with gone_is_fine("InvalidAssociationID.NotFound"):
            cloud.ec2.disassociate_route_table(AssociationId=identifier)


def _dns(cloud: Cloud, vpc: str, name: str) -> bool:
    answer = cloud.ec2.describe_vpc_attribute(VpcId=vpc, Attribute=name)
    return bool(answer[f"{name[0].upper()}{name[1:]}"]["Value"])


def _set_dns(cloud: Cloud, vpc: str, name: str, *, on: bool) -> None:
    cloud.ec2.modify_vpc_attribute(VpcId=vpc, **{f"{name[0].upper()}{name[1:]}": {"Value": on}})


def _map_addresses(cloud: Cloud, subnet: str, *, on: bool) -> None:
    cloud.ec2.modify_subnet_attribute(SubnetId=subnet, MapPublicIpOnLaunch={"Value": on})


def _route(inputs: Properties) -> dict[str, str]:
    names = {"GatewayId": "gatewayId", "NatGatewayId": "natGatewayId"}
    target = {api: inputs[name] for api, name in names.items() if name in inputs}
    return {"RouteTableId": inputs["routeTableId"], "DestinationCidrBlock": inputs["destinationCidrBlock"], **target}


def _route_of(identifier: str) -> tuple[str, str]:
    numbered, _, destination = identifier.partition("_")
    checksum = str(zlib.crc32(destination.encode()))
    return numbered.removeprefix("r-").removesuffix(checksum), destination
