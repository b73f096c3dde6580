"""`topo catalogue`: what can be named."""

from typing import Any

import click

from trainer.flops import parameters
from workloads.catalogue.machines import NAMED_MACHINES, Machine
from workloads.catalogue.models import MODELS, Model
from workloads.catalogue.prices import ON_DEMAND, usd_per_hour
from workloads.catalogue.topologies import NAMED_TOPOLOGIES, NamedTopology, parse_topology
from workloads.catalogue.versions import VERSIONS
from workloads.cli.output import as_json, print_json, print_table

JSON_ALONE = frozenset({"seed_measured_total_s", "nvme_gb", "gpudirect_rdma", "vcpu_quota"})
"""Columns that would make the tables wider than a terminal."""


@click.command("catalogue")
@click.option("--versions", "versions", is_flag=True, help="What is installed, and where each version has run.")
@as_json
def command(as_json: bool, versions: bool) -> None:
    """List topologies, machines and models.

    Other topologies are written as <machine>-<pods>x<GPUs per pod>-<efaN|tcp|local>[-<variant>...].
    """
    _show(_versions() if versions else _names(), as_json=as_json)


def _names() -> dict[str, list[dict[str, Any]]]:
    return {
        "topologies": [_topology(row) for row in NAMED_TOPOLOGIES],
        "machines": [_machine(machine) for machine in NAMED_MACHINES],
        "models": [_model(model) for model in MODELS],
    }


def _versions() -> dict[str, list[dict[str, Any]]]:
    return {"versions": [{"name": one.name, "version": one.version, "tried": one.tried} for one in VERSIONS]}


def _show(document: dict[str, list[dict[str, Any]]], *, as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    for title, entries in document.items():
        columns = [column for column in entries[0] if column not in JSON_ALONE]
        rows = [tuple(_text(entry[column]) for column in columns) for entry in entries]
        print_table([column.replace("_", " ") for column in columns], rows, title=title)


def _topology(row: NamedTopology) -> dict[str, Any]:
    topology = parse_topology(row.name)
    price = usd_per_hour(topology.machine.name, ON_DEMAND.region)
    return {
        "name": row.name,
        "seed": row.seed,
        "nodes": topology.nodes,
        "pods": topology.pods,
        "gpus_per_pod": topology.gpus_per_pod,
        "link": topology.link,
        "model": row.model,
        "recipe": row.recipe,
        "usd_per_hour": None if price is None else round(price * topology.nodes, 2),
        "seed_measured_total_s": row.measured_total_s,
        "shows": row.shows,
    }


def _machine(machine: Machine) -> dict[str, Any]:
    kind = machine.instance_type
    return {
        "name": machine.name,
        "slug": machine.slug,
        "gpus": machine.node_gpus,
        "gpu": machine.gpu.name if machine.gpu else None,
        "gpu_memory_mib": machine.gpu.memory_mib if machine.gpu else None,
        "intra_node_link": machine.gpu.intra_node_link if machine.gpu else None,
        "efa_devices": machine.efa_devices,
        "network_gbps": kind.network_gbps if kind else None,
        "vcpus": kind.vcpus if kind else None,
        "memory_gib": kind.memory_gib if kind else None,
        "nvme_gb": kind.nvme_gb if kind else None,
        "gpudirect_rdma": kind.gpudirect_rdma if kind else None,
        "vcpu_quota": kind.quota_code if kind else None,
        "usd_per_hour": usd_per_hour(machine.name, ON_DEMAND.region),
    }


def _model(model: Model) -> dict[str, Any]:
    architecture = model.config.architecture
    return {
        "name": model.name,
        "parameters": parameters(architecture),
        "layers": architecture.layers,
        "hidden_size": architecture.hidden_size,
        "max_positions": architecture.max_positions,
        "tokenizer": model.config.tokenizer,
        "gated": model.gated_tokenizer,
    }


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
