"""`topo predict`: memory, bytes, time and dollars of arms, each as a range."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import click

from workloads.catalogue.prices import ON_DEMAND
from workloads.cli.arms import planned
from workloads.cli.output import as_json, print_json, print_table
from workloads.cli.units import in_bytes, in_seconds, number, spread
from workloads.planning.plan import Plan
from workloads.planning.prediction import Source


@click.command("predict")
@click.argument("topologies", nargs=-1, required=True, metavar="TOPOLOGY...")
@click.option("--model", metavar="NAME", help="Another model than the topology's usual one.")
@click.option("--recipe", metavar="NAME", help="auto, best, seed-g6e or seed-p4d.")
@click.option("--why", is_flag=True, help="Print the formulas and where their constants come from.")
@as_json
def command(topologies: tuple[str, ...], model: str | None, recipe: str | None, why: bool, as_json: bool) -> None:
    """Say what arms will need, take and cost before anything is made.

    TOPOLOGY is a name or a stack file. Figures are the expected value and, in brackets, the range.
    """
    plans = [planned(what, model=model, recipe=recipe) for what in topologies]
    if as_json:
        print_json({"predictions": [_document(plan) for plan in plans]})
        return
    columns = [_column(plan) for plan in plans]
    rows = [(label, *(column[label] for column in columns)) for label in columns[0]]
    print_table(("predicted", *(plan.topology.name for plan in plans)), rows)
    if why:
        for plan in plans:
            _print_sources(plan)


def _document(plan: Plan) -> dict[str, Any]:
    config = plan.config
    return {
        "topology": plan.topology.name,
        "machine": plan.topology.machine.name,
        "nodes": plan.nodes,
        "pods": config.pods,
        "ranks": config.ranks,
        "model": config.model.name,
        "recipe": config.recipe.model_dump(),
        "sequence_length": config.sequence_length,
        "token_slots_per_step": config.token_slots_per_step,
        "steps": config.steps,
        "price_list": _price_source(plan),
        **asdict(plan.prediction),
    }


def _price_source(plan: Plan) -> str | None:
    if plan.prediction.cost.usd_per_hour is None:
        return None
    return f"{ON_DEMAND.region}, on demand, read on {ON_DEMAND.read_on}: {ON_DEMAND.source}"


def _column(plan: Plan) -> dict[str, str]:
    return {**_work(plan), **_memory(plan), **_time(plan), **_money(plan)}


def _work(plan: Plan) -> dict[str, str]:
    config, recipe = plan.config, plan.config.recipe
    return {
        "model": config.model.name,
        "recipe": f"{recipe.name} (ZeRO-{recipe.zero.stage}"
        f"{', offload' if recipe.zero.offload_optimizer else ''}, {recipe.micro_batch} x "
        f"{recipe.accumulation} sequences of {config.sequence_length} per rank)",
        "nodes x pods x ranks": f"{plan.nodes} x {config.pods} x {config.ranks}",
        "token slots a step": f"{config.token_slots_per_step:,}",
    }


def _memory(plan: Plan) -> dict[str, str]:
    memory = plan.prediction.memory
    limit = "" if memory.limit_gib is None else f" of {number(memory.limit_gib)}"
    return {
        "memory per rank": f"{spread(memory.per_rank_gib, number)} GiB{limit}",
        "  states": f"{number(memory.states_gib)} GiB",
        "  working": f"{spread(memory.working_gib, number)} GiB",
        "host memory per pod": f"{spread(memory.host_per_pod_gib, number)} GiB",
    }


def _time(plan: Plan) -> dict[str, str]:
    step, traffic, prediction = plan.prediction.step, plan.prediction.traffic, plan.prediction
    mfu = prediction.mfu
    return {
        "sent per pod and step": in_bytes(traffic.pod_sent_bytes),
        "sent per rank and step": in_bytes(traffic.collective_bytes_per_rank),
        "step": spread(step.step_s, in_seconds),
        "  compute": spread(step.compute_s, in_seconds),
        "  communication": spread(step.communication_s, in_seconds),
        "    slowest link": step.slowest_link,
        "    of it not hidden": spread(step.exposed_communication_s, in_seconds),
        "  host copies": spread(step.host_copy_s, in_seconds),
        "  optimizer": spread(step.optimizer_s, in_seconds),
        "real tokens/s, all ranks": spread(prediction.real_tokens_per_s, number),
        "MFU": "n/a (peak rate unknown)" if mfu is None else f"{spread(mfu.scaled(100), number)} %",
        "steps": str(plan.config.steps),
        "wall clock": spread(prediction.wall_clock_s, in_seconds),
    }


def _money(plan: Plan) -> dict[str, str]:
    cost = plan.prediction.cost
    if cost.usd_per_hour is None or cost.run_usd is None:
        return {"price": "n/a (none known)", "run costs": "n/a"}
    usd = spread(cost.run_usd, lambda figure: f"{figure:.2f}")
    return {
        "price": f"{cost.nodes} x {cost.usd_per_hour:.2f} USD/h ({ON_DEMAND.region}, {ON_DEMAND.read_on})",
        "run costs": f"{usd} USD",
    }


def _print_sources(plan: Plan) -> None:
    prediction = plan.prediction
    sources: Iterable[tuple[str, Source]] = (
        ("memory", prediction.memory.explained),
        ("bytes", prediction.traffic.explained),
        *(("step", source) for source in prediction.step.explained),
        ("cost", prediction.cost.explained),
    )
    rows = [(what, source.formula, source.source) for what, source in sources]
    print_table(("figure", "formula", "source"), rows, title=plan.topology.name)
