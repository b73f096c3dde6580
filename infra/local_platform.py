"""A cluster that is there already: no cloud, no GPU pool, Trainer is installed into it."""

from dataclasses import dataclass
from pathlib import Path

import pulumi

from infra.component import Component
from infra.foundation import Foundation
from infra.placing import connect
from infra.trainer_operator import TrainerOperator, TrainerOperatorArgs
from workloads.rendering.bindings import Bindings


@dataclass(frozen=True, kw_only=True)
class LocalPlatformArgs:
    """`kubeconfig` and `context`: None for the ambient ones. `records_folder`: of the node, absolute."""

    kubeconfig: pulumi.Output[str] | None
    context: str | None
    records_folder: str
    charts: Path | None


class LocalPlatform(Component):
    """Pods go to any node that has the resources; their records to a folder of that node."""

    TYPE = "topolab:infra:LocalPlatform"
    foundation: Foundation

    def __init__(self, name: str, args: LocalPlatformArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        provider = connect(self.child(), kubeconfig=args.kubeconfig, context=args.context)
        operator = TrainerOperator(
            "trainer",
            TrainerOperatorArgs(after=[], charts=args.charts),
            opts=pulumi.ResourceOptions(parent=self, providers=[provider]),
        )
        records = f"file://{args.records_folder}"
        self.foundation = Foundation(
            provider=provider,
            bindings=Bindings.local(records_path=args.records_folder),
            operator=operator.release,
            needs=(),
            records=records,
            kubeconfig=None,
        )
        self.register_outputs({"records": records})
