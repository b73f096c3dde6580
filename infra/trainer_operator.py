"""Kubeflow Trainer, and JobSet with it."""

from dataclasses import dataclass
from pathlib import Path

import pulumi

from infra.charts import Release, install
from infra.component import Component
from workloads.catalogue.versions import KUBEFLOW_TRAINER


@dataclass(frozen=True, kw_only=True)
class TrainerOperatorArgs:
    """`after`: what must outlive it; the GPU pool, or nothing on a cluster that isn't ours."""

    after: list[pulumi.Resource]
    charts: Path | None


class TrainerOperator(Component):
    """The controllers that turn a TrainJob into pods."""

    TYPE = "topolab:infra:TrainerOperator"
    release: pulumi.Resource
    """Uninstalling it deletes its CRDs and every TrainJob, so those go first."""

    def __init__(self, name: str, args: TrainerOperatorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        self.release = install(
            self,
            Release(
                name="kubeflow-trainer",
                chart=KUBEFLOW_TRAINER,
                namespace="kubeflow-system",
                create_namespace=True,
                values={
                    "crds": {"enabled": True},
                    "jobset": {"install": True},
                    # The chart's runtimes come by a hook that fetches a tool from the internet; ours is ours.
                    "runtimes": {"defaultEnabled": False},
                },
            ),
            folder=args.charts,
            # Pods of a job end through this controller, so it goes before the nodes are drained.
            depends_on=args.after,
        )
        self.register_outputs({})
