"""What a first `pulumi up` waits for, one after the other: `python -m tests.critical_path [STACK]`.

The chain is the program's own: its dependencies, read from the in-memory engine. How long AWS takes for each is an
estimate, a range of what its users tell; nothing was measured here.
"""

import sys
from dataclasses import dataclass

from tests.pulumi_engine import Graph, Registered, registered

TAKES_MIN: dict[str, tuple[float, float]] = {
    "eks:index:Cluster": (8, 15),
    "aws:eks/nodeGroup:NodeGroup": (2, 4),
    "aws:eks/addon:Addon": (0.3, 2),
    "aws:ec2/natGateway:NatGateway": (1, 2),
    "aws:fsx/lustreFileSystem:LustreFileSystem": (5, 10),
    "kubernetes:helm.sh/v3:Release": (0.5, 2),
}
"""Minutes, estimated: at best and usually at most; all else takes seconds."""
_ELSE = (0.02, 0.1)


@dataclass(frozen=True)
class Chain:
    """Resources in the order of their making, and the minutes of all."""

    links: tuple[Registered, ...]
    low_min: float
    high_min: float


def longest(graph: Graph) -> Chain:
    """The chain that takes longest at most."""
    best: dict[str, Chain] = {}
    for one in graph.resources:
        # The engine registers a resource after all that it waits for.
        before = max((best[urn] for urn in waits_for(graph, one) if urn in best), key=_high, default=Chain((), 0, 0))
        low, high = TAKES_MIN.get(one.type, _ELSE if one.custom else (0, 0))
        best[one.urn] = Chain((*before.links, one), before.low_min + low, before.high_min + high)
    return max(best.values(), key=_high)


def waits_for(graph: Graph, one: Registered) -> set[str]:
    """What must be there before it: what it names, and the provider that it goes through."""
    providers = {reference.rsplit("::", 1)[0] for reference in (one.provider, *one.providers.values()) if reference}
    return (set(one.dependencies) | providers) - {graph.stack_urn}


def _high(chain: Chain) -> float:
    return chain.high_min


def main(stack: str) -> None:
    """Print the chain, a line each that takes minutes."""
    graph = registered(stack)
    chain = longest(graph)
    custom = [one for one in graph.resources if one.custom]
    print(f"{stack}: {len(custom)} resources, {len(chain.links)} one after the other,")
    print(f"{chain.low_min:.0f} to {chain.high_min:.0f} minutes to an accepted TrainJob, of which wait:")
    for one in chain.links:
        if one.type in TAKES_MIN:
            low, high = TAKES_MIN[one.type]
            print(f"  {one.type.rsplit(':', 1)[-1]:18} {one.name:24} {low:g} to {high:g} min")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "dev")
