"""VPC, subnets over two zones, and the ways out of it."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.component import Component
from infra.subnets import Subnet, SubnetPlan
from workloads.planning.naming import KEPT

ANYWHERE = "0.0.0.0/0"


@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    """`retain_gpu_subnet`: a file system that is kept stands in it, so it and the VPC are kept too."""

    name: str
    region: str
    vpc_cidr: str
    subnets: SubnetPlan
    retain_gpu_subnet: bool


class Network(Component):
    """Nodes live in private subnets; NAT pulls images, the S3 endpoint carries checkpoints and layers."""

    TYPE = "topolab:infra:Network"
    vpc_id: pulumi.Output[str]
    gpu_subnet_id: pulumi.Output[str]
    private_subnet_ids: list[pulumi.Output[str]]
    public_subnet_ids: list[pulumi.Output[str]]
    routes: list[pulumi.Resource]
    """What nodes need to reach AWS and registries, up to their last breath."""

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        self._args = args
        vpc = aws.ec2.Vpc(
            "vpc",
            cidr_block=args.vpc_cidr,
            # FSx is mounted by DNS name, and the private API endpoint is one.
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=self._named("vpc", kept=args.retain_gpu_subnet),
            opts=self.child(retain=args.retain_gpu_subnet),
        )
        self.vpc_id = vpc.id
        gateway = aws.ec2.InternetGateway("internet", vpc_id=vpc.id, tags=self._named("internet"), opts=self.child())
        plan = args.subnets
        gpu = self._subnet("gpu-private", plan.gpu_private, retain=args.retain_gpu_subnet)
        other = self._subnet("other-private", plan.other_private)
        public = [
            self._subnet("gpu-public", plan.gpu_public),
            self._subnet("other-public", plan.other_public),
        ]
        inward = self._public_routes(gateway, public)
        outward = self._private_routes(gateway, public[0].id, [gpu, other])
        self.gpu_subnet_id = gpu.id
        self.private_subnet_ids = [gpu.id, other.id]
        self.public_subnet_ids = [subnet.id for subnet in public]
        self.routes = [*inward, *outward]
        self.register_outputs(
            {
                "vpc_id": self.vpc_id,
                "gpu_subnet_id": self.gpu_subnet_id,
                "private_subnet_ids": self.private_subnet_ids,
                "public_subnet_ids": self.public_subnet_ids,
            }
        )

    def _subnet(self, name: str, subnet: Subnet, *, retain: bool = False) -> aws.ec2.Subnet:
        return aws.ec2.Subnet(
            name,
            vpc_id=self.vpc_id,
            cidr_block=subnet.cidr,
            availability_zone=subnet.zone,
            # EC2 refuses a launch with several interfaces where public addresses are given by themselves;
            # NAT has an address of its own, so no subnet needs them.
            map_public_ip_on_launch=False,
            tags=self._named(name, kept=retain),
            opts=self.child(retain=retain),
        )

    def _public_routes(self, gateway: aws.ec2.InternetGateway, subnets: list[aws.ec2.Subnet]) -> list[pulumi.Resource]:
        table = self._table("public")
        route = aws.ec2.Route(
            "public-default",
            route_table_id=table.id,
            destination_cidr_block=ANYWHERE,
            gateway_id=gateway.id,
            opts=self.child(),
        )
        return [route, *self._associations("public", table, subnets)]

    def _private_routes(
        self,
        gateway: aws.ec2.InternetGateway,
        nat_subnet_id: pulumi.Input[str],
        subnets: list[aws.ec2.Subnet],
    ) -> list[pulumi.Resource]:
        # AWS gives and takes back public addresses only while the VPC has its internet gateway.
        through_gateway = self.child(depends_on=[gateway])
        address = aws.ec2.Eip("nat", domain="vpc", tags=self._named("nat"), opts=through_gateway)
        nat = aws.ec2.NatGateway(
            "nat",
            allocation_id=address.allocation_id,
            subnet_id=nat_subnet_id,
            tags=self._named("nat"),
            opts=through_gateway,
        )
        table = self._table("private")
        route = aws.ec2.Route(
            "private-default",
            route_table_id=table.id,
            destination_cidr_block=ANYWHERE,
            nat_gateway_id=nat.id,
            opts=self.child(),
        )
        endpoint = aws.ec2.VpcEndpoint(
            "s3",
            vpc_id=self.vpc_id,
            service_name=f"com.amazonaws.{self._args.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[table.id],
            tags=self._named("s3"),
            opts=self.child(),
        )
        return [route, endpoint, *self._associations("private", table, subnets)]

    def _table(self, name: str) -> aws.ec2.RouteTable:
        return aws.ec2.RouteTable(name, vpc_id=self.vpc_id, tags=self._named(name), opts=self.child())

    def _associations(
        self, name: str, table: aws.ec2.RouteTable, subnets: list[aws.ec2.Subnet]
    ) -> list[pulumi.Resource]:
        return [
            aws.ec2.RouteTableAssociation(
                f"{name}-{place}", route_table_id=table.id, subnet_id=subnet.id, opts=self.child()
            )
            for place, subnet in zip(("gpu", "other"), subnets, strict=True)
        ]

    def _named(self, part: str, *, kept: bool = False) -> dict[str, str]:
        return {"Name": f"{self._args.name}-{part}", **(KEPT if kept else {})}
