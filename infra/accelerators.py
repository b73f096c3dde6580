"""Device plugins: what makes a node's GPUs and EFA devices something that a pod can ask for."""

from dataclasses import dataclass
from pathlib import Path

import pulumi

from infra.charts import Release, install
from infra.component import Component
from workloads.catalogue.versions import EFA_DEVICE_PLUGIN, NVIDIA_DEVICE_PLUGIN

NAMESPACE = "kube-system"
# The charts tolerate little: untolerated, a taint keeps the plugin off, and the node never initialises.
EVERYWHERE = [{"operator": "Exists"}]


@dataclass(frozen=True, kw_only=True)
class AcceleratorsArgs:
    """`efa`: nodes of the pool have EFA devices. `pool`: the GPU pool."""

    efa: bool
    pool: pulumi.Resource
    charts: Path | None


class Accelerators(Component):
    """The NVIDIA plugin, and the EFA plugin where a node has something for it (elsewhere it crash-loops)."""

    TYPE = "topolab:infra:Accelerators"
    plugins: list[pulumi.Resource]

    def __init__(self, name: str, args: AcceleratorsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        releases = [_NVIDIA, _EFA] if args.efa else [_NVIDIA]
        self.plugins = [
            # A node initialises only with its plugins, so they come after the pool that they serve and leave
            # before it drains: no pod is left then that wants a device.
            install(self, release, folder=args.charts, depends_on=[args.pool])
            for release in releases
        ]
        self.register_outputs({})


_NVIDIA = Release(
    name="nvidia-device-plugin",
    chart=NVIDIA_DEVICE_PLUGIN,
    namespace=NAMESPACE,
    # Feature discovery would bring NFD, whose worker tolerates one exact taint; the pool carries the label.
    values={"gfd": {"enabled": False}, "tolerations": EVERYWHERE},
)
_EFA = Release(
    name="aws-efa-k8s-device-plugin",
    chart=EFA_DEVICE_PLUGIN,
    namespace=NAMESPACE,
    values={"tolerations": EVERYWHERE},
)
