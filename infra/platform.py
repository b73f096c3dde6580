"""The part of AWS that outlives a pool, composed: the only place that asks AWS a question."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.account import SPOT_ROLES, Account, check_spot_role, checked_account
from infra.cluster import Cluster, ClusterArgs
from infra.component import Component
from infra.control_plane import Access, ControlPlaneArgs, control_plane_log
from infra.karpenter import Karpenter, KarpenterArgs
from infra.network import Network, NetworkArgs
from infra.records import Records, RecordsArgs
from infra.settings import Settings
from infra.subnets import plan_subnets, second_zone
from infra.teardown import TIMEOUT, Home, InterfacesGone
from workloads.catalogue.zones import CONTROL_PLANE_EXCLUDED_ZONE_IDS
from workloads.planning.spec import Platform as PlatformSpec


@dataclass(frozen=True, kw_only=True)
class PlatformArgs:
    """A composer sees all settings; what it makes sees the narrow values."""

    settings: Settings
    region: str
    zone: str


class Platform(Component):
    """Network, cluster, Karpenter and records bucket."""

    TYPE = "topolab:infra:Platform"
    account: Account
    home: Home
    """Where drain guards look."""
    network: Network
    cluster: Cluster
    karpenter: Karpenter
    records_uri: pulumi.Input[str]
    providers: list[pulumi.ProviderResource]

    def __init__(self, name: str, args: PlatformArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        self._args, self._names = args, args.settings.names
        self._spec: PlatformSpec = args.settings.stack.platform
        self.account = _account(self._spec)
        profile = args.settings.profile
        self.home = Home(names=self._names, account=self.account.id, region=args.region, profile=profile)
        self.providers = [self._aws()]
        self.network = self._network()
        self.cluster = self._cluster()
        self.providers.append(self.cluster.provider)
        self.karpenter = self._karpenter()
        self.records_uri = self._records()
        self.register_outputs({"records_uri": self.records_uri, "kubeconfig": self.cluster.kubeconfig})

    def _aws(self) -> aws.Provider:
        return aws.Provider(
            "aws",
            region=self._args.region,
            profile=self._args.settings.profile,
            allowed_account_ids=[self.account.id],
            default_tags=aws.ProviderDefaultTagsArgs(tags=self._names.tags),
            opts=self.child(),
        )

    def _network(self) -> Network:
        storage, cidr = self._spec.storage, self._spec.vpc_cidr
        args = NetworkArgs(
            name=self._names.base,
            region=self._args.region,
            vpc_cidr=cidr,
            subnets=plan_subnets(cidr, self._args.zone, _other_zone(self._args.zone)),
            retain_gpu_subnet=storage.fsx != "none" and storage.keep,
        )
        return Network("network", args, opts=self._inside())

    def _cluster(self) -> Cluster:
        log = control_plane_log(self._names.base, self._inside())
        guard = InterfacesGone(
            "interfaces-gone",
            self.home,
            self.network.vpc_id,
            # Subnets and routes last until the interfaces in them are gone.
            # EKS writes its log to the end, and makes the group anew that it misses.
            self.child(depends_on=[*self.network.routes, log], delete_timeout=TIMEOUT),
        )
        plane = ControlPlaneArgs(
            name=self._names.base,
            role_name=self._names.of("control-plane"),
            partition=self.account.partition,
            boundary=self._spec.permissions_boundary,
            vpc_id=self.network.vpc_id,
            private_subnet_ids=self.network.private_subnet_ids,
            public_subnet_ids=self.network.public_subnet_ids,
            interfaces_gone=guard,
            profile=self._args.settings.profile,
            access=_access(self._spec),
        )
        name = self._names.of("system-node")
        args = ClusterArgs(control_plane=plane, node_role_name=name, node_tags={"Name": name, **self._names.tags})
        return Cluster("cluster", args, opts=self._inside())

    def _karpenter(self) -> Karpenter:
        args = KarpenterArgs(
            names=self._names,
            account=self.account,
            region=self._args.region,
            boundary=self._spec.permissions_boundary,
            cluster_name=self.cluster.name,
            ready=self.cluster.ready,
            charts=self._args.settings.charts,
        )
        return Karpenter("karpenter", args, opts=self._inside())

    def _records(self) -> pulumi.Input[str]:
        if self._spec.records != "managed":
            return self._spec.records
        return Records("records", RecordsArgs(bucket_prefix=self._names.bucket_prefix), opts=self._inside()).uri

    def _inside(self) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, providers=list(self.providers))


def _access(spec: PlatformSpec) -> Access:
    return Access(private=spec.api_endpoint == "private", cidrs=spec.api_access_cidrs, admins=spec.admins)


def _account(spec: PlatformSpec) -> Account:
    # Through the default provider: ours refuses other accounts itself, in words that name no key of the stack.
    caller = aws.get_caller_identity()
    account = checked_account(caller.account_id, caller.arn, spec.allowed_accounts)
    if spec.capacity.mode == "spot":
        check_spot_role(aws.iam.get_roles(path_prefix=SPOT_ROLES).names)
    return account


def _other_zone(gpu_zone: str) -> str:
    available = aws.get_availability_zones(
        state="available",
        exclude_zone_ids=list(CONTROL_PLANE_EXCLUDED_ZONE_IDS),
        # Local Zones and Wavelength Zones are opted into; EKS has no control plane there.
        filters=[aws.GetAvailabilityZonesFilterArgs(name="opt-in-status", values=["opt-in-not-required"])],
    )
    return second_zone(gpu_zone, available.names)
