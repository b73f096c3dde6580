"""Which transport each pair of ranks really used, from NCCL's logs or from the ranks' sockets. Pure."""

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from trainer.config import TrainConfig
from trainer.contract import LinkClass
from trainer.nccl_log import Pair, parse
from trainer.record import Connection, RankFacts, Transport


def transports(config: TrainConfig, ranks: Sequence[RankFacts], nccl_logs: Mapping[int, str]) -> tuple[Transport, ...]:
    """The directed pairs of global ranks that left evidence, and what they used.

    NCCL: its channel lines. gloo: each rank's established connections; between pods `TCP`, and `loopback`
    where both ends are addresses of one pod, which the kernel never puts on a wire.
    """
    by_rank = {facts.rank: facts for facts in ranks}
    found = _from_nccl(config, by_rank, nccl_logs) if config.backend == "nccl" else _from_gloo(by_rank)
    return tuple(sorted(found, key=lambda t: (t.from_rank, t.to_rank, t.transport, t.detail)))


def link_class(one: RankFacts, other: RankFacts) -> LinkClass:
    """Relation of two ranks by where they ran."""
    if one.pod == other.pod:
        return "same-pod"
    return "same-node" if one.node == other.node else "other-node"


def _from_nccl(config: TrainConfig, by_rank: Mapping[int, RankFacts], nccl_logs: Mapping[int, str]) -> list[Transport]:
    channels: dict[tuple[int, int, str, str], int] = defaultdict(int)
    for text in nccl_logs.values():
        for pair in parse(text).pairs:
            if _spans_world(pair, config.ranks) and {pair.from_rank, pair.to_rank} <= by_rank.keys():
                key = (pair.from_rank, pair.to_rank, pair.transport, pair.detail)
                channels[key] = max(channels[key], pair.channels)
    return [
        Transport(
            from_rank=start,
            to_rank=end,
            link_class=link_class(by_rank[start], by_rank[end]),
            transport=transport,
            detail=detail,
            channels=count,
        )
        for (start, end, transport, detail), count in channels.items()
    ]


def _spans_world(pair: Pair, world: int) -> bool:
    """In a communicator of all ranks, local numbers are global ones (torch's default group, and its splits
    of everyone, keep the order); a smaller communicator's numbers say nothing about places."""
    return pair.communicator_ranks in ((), (world,))


def _from_gloo(by_rank: Mapping[int, RankFacts]) -> list[Transport]:
    owners = _socket_owners(by_rank.values())
    found: dict[tuple[int, int, str, str], Transport] = {}
    for facts in by_rank.values():
        for connection in facts.connections:
            for peer in _peers(facts, connection, by_rank.values(), owners):
                transport = _gloo_transport(facts, peer, connection)
                found[transport.from_rank, transport.to_rank, transport.transport, transport.detail] = transport
    return list(found.values())


def _socket_owners(ranks: Iterable[RankFacts]) -> dict[tuple[str, str], set[int]]:
    owners: dict[tuple[str, str], set[int]] = defaultdict(set)
    for facts in ranks:
        for connection in facts.connections:
            owners[connection.local_address, connection.remote_address].add(facts.rank)
    return owners


def _peers(
    facts: RankFacts,
    connection: Connection,
    ranks: Iterable[RankFacts],
    owners: Mapping[tuple[str, str], set[int]],
) -> list[RankFacts]:
    """The ranks at the other end: the one that holds the mirrored socket, else (a socket of a process that
    is no rank, or addresses without ports) every rank of the pod that owns the address."""
    others = [other for other in ranks if other.rank != facts.rank]
    mirrored = owners.get((connection.remote_address, connection.local_address), set())
    exact = [other for other in others if other.rank in mirrored]
    if len(exact) == 1:
        return exact
    if _stays_inside(facts, connection):
        return [other for other in others if other.pod == facts.pod]
    remote = _host(connection.remote_address)
    return [other for other in others if remote in map(_host, other.addresses)]


def _stays_inside(facts: RankFacts, connection: Connection) -> bool:
    remote = _host(connection.remote_address)
    return _is_loopback(remote) or remote in map(_host, facts.addresses)


def _gloo_transport(facts: RankFacts, peer: RankFacts, connection: Connection) -> Transport:
    local, remote = _host(connection.local_address), _host(connection.remote_address)
    return Transport(
        from_rank=facts.rank,
        to_rank=peer.rank,
        link_class=link_class(facts, peer),
        transport="loopback" if _stays_inside(facts, connection) else "TCP",
        detail=f"{local} -> {remote}",
        channels=1,
    )


def _host(address: str) -> str:
    """`10.90.0.1`, `10.90.0.1:4711`, `[fd00::1]:4711`, `::ffff:10.90.0.1` and `10.90.0.1/24`, as one form."""
    bare = address.partition("/")[0]
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        parsed = ipaddress.ip_address(bare)
    except ValueError:
        return bare
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
