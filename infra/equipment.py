"""What a run on EC2 needs of its platform, composed: pool, plugins, storage, Trainer and rights."""

from dataclasses import dataclass, replace

import pulumi

from infra.accelerators import Accelerators, AcceleratorsArgs
from infra.component import Component
from infra.foundation import Foundation
from infra.gpu_nodes import GpuNodes, GpuNodesArgs
from infra.platform import Platform
from infra.settings import Settings
from infra.storage import Storage, StorageArgs
from infra.trainer_operator import TrainerOperator, TrainerOperatorArgs
from infra.trainer_rights import TrainerRights, TrainerRightsArgs
from workloads.planning.plan import Plan
from workloads.rendering.bindings import Bindings


@dataclass(frozen=True, kw_only=True)
class EquipmentArgs:
    """A composer sees all of its platform; what it makes sees the narrow values."""

    settings: Settings
    plan: Plan
    platform: Platform


class Equipment(Component):
    """All of it stands on the pool and leaves before the pool is drained."""

    TYPE = "topolab:infra:Equipment"
    foundation: Foundation

    def __init__(self, name: str, args: EquipmentArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        self._args, self._names = args, args.settings.names
        bindings = self._bindings()
        pool = self._pool(bindings)
        plugins = self._plugins(pool)
        storage = self._storage(pool)
        rights = self._rights()
        trainer = TrainerOperator(
            "trainer", TrainerOperatorArgs(after=[pool], charts=args.settings.charts), opts=self._inside()
        )
        self.foundation = Foundation(
            provider=args.platform.cluster.provider,
            bindings=bindings if storage is None else _with_storage(bindings, storage),
            operator=trainer.release,
            needs=(pool, *plugins, rights, *(() if storage is None else (storage.driver,))),
            records=args.platform.records_uri,
            kubeconfig=args.platform.cluster.kubeconfig,
        )
        self.register_outputs({"records": args.platform.records_uri})

    def _bindings(self) -> Bindings:
        return Bindings(
            records_uri=self._args.platform.records_uri,
            subnet_id=self._args.platform.network.gpu_subnet_id,
            security_group_id=self._args.platform.cluster.security_group_id,
            tags={"Name": self._names.of("gpu"), **self._names.tags},
        )

    def _pool(self, bindings: Bindings) -> pulumi.Resource:
        karpenter = self._args.platform.karpenter
        args = GpuNodesArgs(
            plan=self._args.plan,
            name=self._names.of("gpu-node"),
            bindings=bindings,
            node_role_name=karpenter.node_role_name,
            controller=karpenter.controller,
            home=self._args.platform.home,
            kubeconfig=self._args.platform.cluster.kubeconfig,
        )
        return GpuNodes("gpu-nodes", args, opts=self._inside()).pool

    def _plugins(self, pool: pulumi.Resource) -> list[pulumi.Resource]:
        efa = self._args.plan.topology.machine.efa_devices > 0
        args = AcceleratorsArgs(efa=efa, pool=pool, charts=self._args.settings.charts)
        return Accelerators("accelerators", args, opts=self._inside()).plugins

    def _storage(self, pool: pulumi.Resource) -> Storage | None:
        spec, platform = self._args.plan.platform, self._args.platform
        if spec.storage.fsx == "none":
            return None
        args = StorageArgs(
            kind=spec.storage.fsx,
            keep=spec.storage.keep,
            name=self._names.of("lustre"),
            cluster_name=platform.cluster.name,
            vpc_id=platform.network.vpc_id,
            vpc_cidr=spec.vpc_cidr,
            subnet_id=platform.network.gpu_subnet_id,
            security_group_id=platform.cluster.security_group_id,
            pool=pool,
        )
        return Storage("storage", args, opts=self._inside())

    def _rights(self) -> pulumi.Resource:
        source, platform = self._args.plan.config.data.source, self._args.platform
        args = TrainerRightsArgs(
            role_name=self._names.of("trainer"),
            boundary=self._args.settings.stack.platform.permissions_boundary,
            partition=platform.account.partition,
            cluster_name=platform.cluster.name,
            records_uri=platform.records_uri,
            data_uri=source if source.startswith("s3://") else None,
        )
        return TrainerRights("trainer-rights", args, opts=self._inside()).association

    def _inside(self) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, providers=list(self._args.platform.providers))


def _with_storage(bindings: Bindings, storage: Storage) -> Bindings:
    return replace(
        bindings,
        fsx_file_system_id=storage.file_system_id,
        fsx_dns_name=storage.dns_name,
        fsx_mount_name=storage.mount_name,
    )
