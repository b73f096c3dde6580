"""Dollars of a run: nodes x price x wall clock. A price that isn't known stays unknown."""

from workloads.catalogue.prices import ON_DEMAND, usd_per_hour
from workloads.catalogue.topologies import Topology
from workloads.planning.prediction import CostPrediction, Range, Source


def cost(topology: Topology, *, region: str | None, wall_clock_s: Range) -> CostPrediction:
    """GPU nodes for the time of the run, on demand; system nodes, storage and idle time not counted."""
    price = usd_per_hour(topology.machine.name, region) if region else None
    run = None if price is None else wall_clock_s.scaled(topology.nodes * price / 3600.0)
    return CostPrediction(
        nodes=topology.nodes,
        usd_per_hour=price,
        run_usd=run,
        explained=Source(
            formula="GPU nodes x USD per hour x wall clock (without start of nodes, system nodes, storage)",
            source=f"{ON_DEMAND.source}, {ON_DEMAND.region}, {ON_DEMAND.read_on.isoformat()}",
        ),
    )
