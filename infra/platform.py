"""The part of AWS that outlives a pool, composed: the only place that asks AWS a question."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.account import Account, checked_account
from infra.cluster import Cluster, ClusterArgs
from infra.component import Component
from infra.karpenter import Karpenter, KarpenterArgs
from infra.karpenter_policies import Scope
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
        self.home = self._home()
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

    def _home(self) -> Home:
        settings = self._args.settings
        return Home(names=settings.names, account=self.account.id, region=self._args.region, profile=settings.profile)

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
        guard = InterfacesGone(
            "interfaces-gone",
            self.home,
            self.network.vpc_id,
            # Subnets and routes last until the interfaces in them are gone.
            self.child(depends_on=self.network.routes, delete_timeout=TIMEOUT),
        )
        args = ClusterArgs(
            name=self._names.base,
            node_role_name=self._names.of("system-node"),
            partition=self.account.partition,
            vpc_id=self.network.vpc_id,
            private_subnet_ids=self.network.private_subnet_ids,
            public_subnet_ids=self.network.public_subnet_ids,
            interfaces_gone=guard,
            profile=self._args.settings.profile,
            api_access_cidrs=self._spec.api_access_cidrs,
        )
        return Cluster("cluster", args, opts=self._inside())

    def _karpenter(self) -> Karpenter:
        scope = Scope(
            partition=self.account.partition,
            region=self._args.region,
            account=self.account.id,
            cluster=self._names.base,
            node_role=self._names.of("gpu-node"),
            queue=self._names.base,
        )
        args = KarpenterArgs(
            names=self._names,
            scope=scope,
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


def _account(spec: PlatformSpec) -> Account:
    # Through the default provider: ours refuses other accounts itself, in words that name no key of the stack.
    caller = aws.get_caller_identity()
    return checked_account(caller.account_id, caller.arn, spec.allowed_accounts)


def _other_zone(gpu_zone: str) -> str:
    available = aws.get_availability_zones(
        state="available",
        exclude_zone_ids=list(CONTROL_PLANE_EXCLUDED_ZONE_IDS),
        # Local Zones and Wavelength Zones are opted into; EKS has no control plane there.
        filters=[aws.GetAvailabilityZonesFilterArgs(name="opt-in-status", values=["opt-in-not-required"])],
    )
    return second_zone(gpu_zone, available.names)
