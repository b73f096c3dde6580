"""The program: settings and plan in, a registered stack and its outputs out."""

from datetime import UTC, datetime

import pulumi

from infra.equipment import Equipment, EquipmentArgs
from infra.foundation import Foundation
from infra.local_platform import LocalPlatform, LocalPlatformArgs
from infra.platform import Platform, PlatformArgs
from infra.settings import Settings
from infra.train_job import TrainJob, TrainJobArgs
from workloads.planning.plan import NAMESPACE, Plan
from workloads.planning.plan import plan as plan_stack


def plan_of(settings: Settings) -> Plan:
    """The plan of the stack; ValueError where anything in its file can't be."""
    topology, stack = settings.stack.topology, settings.names.stack
    return plan_stack(settings.stack, region=settings.region, experiment=stack, arm=topology, now=datetime.now(UTC))


def build(settings: Settings, plan: Plan) -> dict[str, pulumi.Input[str]]:
    """Registers everything; the stack's outputs by name."""
    foundation = _foundation(settings, plan)
    job = TrainJob(
        "train-job",
        TrainJobArgs(
            plan=plan,
            bindings=foundation.bindings,
            hf_token=settings.hf_token,
            operator=foundation.operator,
            needs=foundation.needs,
        ),
        opts=pulumi.ResourceOptions(providers=[foundation.provider]),
    )
    outputs = {
        "namespace": NAMESPACE,
        "trainJob": job.name,
        "records": foundation.records,
        "predictedCost": predicted_cost(plan),
        "next": pulumi.Output.format(
            "kubectl -n {0} get trainjob {1} -w, then ./topo collect {2} --out records && ./topo report records",
            NAMESPACE,
            job.name,
            foundation.records,
        ),
    }
    return outputs if foundation.kubeconfig is None else {**outputs, "kubeconfig": foundation.kubeconfig}


def predicted_cost(plan: Plan) -> str:
    """One line: the run's dollars as a range, and what an hour costs for as long as nodes are up."""
    cost = plan.prediction.cost
    if cost.run_usd is None or cost.usd_per_hour is None:
        return "none: local machine" if plan.topology.machine.is_local else "unknown: no price for this region"
    return (
        f"{cost.run_usd.expected:.2f} USD, {cost.run_usd.low:.2f} to {cost.run_usd.high:.2f}; "
        f"GPU nodes {cost.nodes * cost.usd_per_hour:.2f} USD an hour while they are up"
    )


def _foundation(settings: Settings, plan: Plan) -> Foundation:
    if plan.topology.rate_bits_per_s is not None:
        raise ValueError(
            f"topolab:topology = {plan.topology.name!r}: only the lab can dial a link's rate (`./topo lab`); "
            "drop the rate to run on a cluster"
        )
    if plan.topology.machine.is_local:
        local = LocalPlatform(
            "platform",
            LocalPlatformArgs(
                kubeconfig=settings.kubeconfig,
                context=settings.context,
                records_folder=_records_folder(settings, plan),
                charts=settings.charts,
            ),
        )
        return local.foundation
    zone = plan.platform.zone
    assert zone is not None, "the plan refuses EC2 without a zone"
    if settings.region is None:
        raise ValueError(
            f"Pulumi.{settings.names.stack}.yaml: aws:region is missing; name the region of platform.zone {zone}"
        )
    platform = Platform("platform", PlatformArgs(settings=settings, region=settings.region, zone=zone))
    return Equipment("equipment", EquipmentArgs(settings=settings, plan=plan, platform=platform)).foundation


def _records_folder(settings: Settings, plan: Plan) -> str:
    """A folder that any user of the node can make; a bucket is out of these pods' reach."""
    asked = plan.platform.records
    return f"/var/tmp/{settings.names.base}" if asked == "managed" else asked.removeprefix("file://")
