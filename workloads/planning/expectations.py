"""What the verdict holds a run to, from its topology, model and recipe alone: the plan writes it, and whoever
holds a record derives it again."""

from dataclasses import replace

from trainer.config import Expectations, ExpectedBytes, TrainConfig
from workloads.catalogue.gpus import IntraNodeLink
from workloads.catalogue.topologies import Topology, parse_topology
from workloads.planning.prediction import TrafficPrediction
from workloads.planning.traffic import traffic
from workloads.planning.transports import backend_of, expectations
from workloads.planning.work import Work

_INTRA_NODE_LINKS: tuple[IntraNodeLink, ...] = ("nvlink", "pcie")


def expected_of(topology: Topology, sent: TrafficPrediction) -> Expectations:
    """Nodes, devices, transports, bytes and rate of a topology that sends so much."""
    gloo = backend_of(topology) == "gloo"
    return Expectations(
        nodes=topology.nodes,
        efa_devices_per_pod=topology.efa_devices_per_pod,
        links=expectations(topology),
        bytes_sent=ExpectedBytes(
            counter="efa" if topology.link == "efa" else "interface",
            per_pod_and_step=sent.pod_sent_bytes,
            formula=sent.explained.formula,
            # gloo's ring is counted to the byte; NCCL may pick a tree, and EFA counts its own headers.
            relative_tolerance=0.10 if gloo else 0.25,
            absolute_tolerance_per_step=32 * 1024 if gloo else 2**20,
        ),
        link_rate_bits_per_s=topology.rate_bits_per_s,
    )


def possible_expectations(config: TrainConfig) -> tuple[Expectations, ...]:
    """What a plan may have stated for this topology, model and recipe, derived anew.

    One, but for a local machine's GPUs, whose link within the host was looked at when the plan was made.
    None at all where the catalogue doesn't know the machine.
    """
    try:
        topology = parse_topology(config.topology)
    except ValueError:
        return ()
    return tuple(expected_of(each, traffic(work_of_config(config, each))) for each in _as_it_may_have_been(topology))


def work_of_config(config: TrainConfig, topology: Topology) -> Work:
    """What one step of this config trains on that topology."""
    return Work(
        architecture=config.model.architecture,
        recipe=config.recipe,
        topology=topology,
        sequence_length=config.sequence_length,
        feed=config.data.feed,
    )


def _as_it_may_have_been(topology: Topology) -> tuple[Topology, ...]:
    machine = topology.machine
    if machine.gpu is None or not machine.is_local:
        return (topology,)
    gpus = [replace(machine.gpu, intra_node_link=link) for link in _INTRA_NODE_LINKS]
    return tuple(replace(topology, machine=replace(machine, gpu=gpu)) for gpu in gpus)
