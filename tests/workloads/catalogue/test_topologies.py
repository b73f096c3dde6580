"""The grammar of topology names, and what a name fixes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.catalogue.machines import CPU, NAMED_MACHINES, detected_machine, find_machine
from workloads.catalogue.models import find_model
from workloads.catalogue.prices import ON_DEMAND, usd_per_hour
from workloads.catalogue.topologies import NAMED_TOPOLOGIES, VARIANTS, parse_topology

SEED_ARMS = {"S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10", "S25"}


@pytest.mark.parametrize("row", NAMED_TOPOLOGIES, ids=lambda r: r.name)
def test_every_row_parses_to_its_own_name_and_names_a_model(row):
    assert parse_topology(row.name).name == row.name
    assert find_model(row.model) is not None


def test_every_arm_of_the_seeds_has_a_row():
    assert {row.seed for row in NAMED_TOPOLOGIES if row.seed} == SEED_ARMS
    assert len({row.name for row in NAMED_TOPOLOGIES}) == len(NAMED_TOPOLOGIES)


@pytest.mark.parametrize(
    ("name", "nodes", "per_node"),
    [
        ("g6e12xl-4x4-efa1", 4, 1),
        ("p4d24xl-4x1-efa1", 1, 4),
        ("p4d24xl-8x1-efa1", 2, 4),  # four EFA devices a node, so eight such pods need two
        ("p4d24xl-8x1-tcp", 1, 8),
        ("p4d24xl-2x8-efa4-hostnet", 2, 1),
        ("p4d24xl-4x1-tcp-hostnet", 4, 1),  # pods on the host's network can't share its ports
        ("g6e8xl-16x1-efa1", 16, 1),
        ("cpu-2x1-tcp", 1, 2),
    ],
)
def test_pods_fill_nodes(name, nodes, per_node):
    topology = parse_topology(name)
    assert (topology.nodes, topology.pods_per_node) == (nodes, per_node)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("g6e12xl", "is no topology: write <machine>-<pods>x<GPUs per pod>"),
        ("g6e12xl-4x4-efa", "nearest: g6e12xl-4x4-efa1"),
        ("g6e13xl-4x4-efa1", "names no known machine (g6e13xl)"),
        ("g6e8xl-2x1-efa8", "g6e.8xlarge has 1; write efa1 or fewer"),
        ("cpu-2x1-efa1", "cpu has 0; write tcp"),
        ("g6e12xl-4x8-tcp", "a pod of 8 GPUs doesn't fit g6e.12xlarge, which has 4"),
        ("h200x4-4x2-tcp", "8 GPUs are asked of h200x4, which has 4"),
        ("p4d24xl-2x8-local", "link `local` is one pod, not 2"),
        ("p4d24xl-1x8-tcp", "one pod crosses no network; write `local`"),
        ("g6e12xl-4x4-tcp-25gbit", "a rate can be dialled on local machines with link tcp only"),
        ("cpu-1x2-local-25gbit", "a rate can be dialled on local machines with link tcp only"),
        ("h200x4-1x4-local-shm-push", "shm, push and pull exclude each other"),
        ("g6e12xl-4x4-tcp-hostnet-pg", "in the order pg, hostnet"),
        ("g6e12xl-4x4-tcp-pg-pg", "stand once"),
        ("g6e12xl-4x4-efa1-fast", "'fast' is no variant; known, in this order: a rate such as 200mbit"),
        ("g6e12xl-4x4-efa1-tuned", "`tuned` sets sockets and threads, so it needs link tcp"),
        ("cpu-2x1-tcp-tuned", "variant tuned needs a GPU machine"),
        ("h200x4-4x1-tcp-pg", "pg, hostnet and hostipc need EC2 nodes"),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_the_remedy(name, sentence):
    with pytest.raises(ValueError, match=r"^'") as error:
        parse_topology(name)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("word", "bits"), [("200mbit", 200e6), ("25gbit", 25e9), ("1gbit", 1e9)])
def test_a_rate_counts_bits(word, bits):
    assert parse_topology(f"cpu-2x1-tcp-{word}").rate_bits_per_s == bits


@given(
    machine=st.sampled_from([m.slug for m in NAMED_MACHINES]),
    pods=st.integers(1, 32),
    gpus=st.integers(1, 9),
    link=st.sampled_from(["tcp", "local", "efa1", "efa4", "efa32"]),
    variants=st.lists(st.sampled_from(VARIANTS), unique=True, max_size=3),
)
def test_whatever_parses_places_all_its_pods(machine, pods, gpus, link, variants):
    name = "-".join([machine, f"{pods}x{gpus}", link, *sorted(variants, key=VARIANTS.index)])
    try:
        topology = parse_topology(name)
    except ValueError:
        return
    node = topology.machine
    assert topology.nodes * topology.pods_per_node >= topology.pods > (topology.nodes - 1) * topology.pods_per_node
    if not node.is_local:
        assert topology.pods_per_node * gpus <= node.node_gpus
        assert topology.pods_per_node * topology.efa_devices_per_pod <= node.efa_devices


def test_a_known_gpu_is_recognised_by_its_own_memory():
    machine = detected_machine(["NVIDIA H200"] * 4, 143771, nvlink=True)
    assert machine.slug == "h200x4"
    assert machine.gpu is not None
    assert machine.gpu.peak_flops_per_s == 989e12


def test_an_unknown_gpu_keeps_its_peak_unknown_and_can_be_named():
    machine = detected_machine(["NVIDIA GeForce RTX 4090"] * 2, 24564, nvlink=False)
    assert machine.slug == "geforcertx4090x2"
    assert machine.gpu is not None
    assert machine.gpu.peak_flops_per_s is None
    assert parse_topology("geforcertx4090x2-2x1-tcp", machine).machine is machine
    with pytest.raises(ValueError, match="names no known machine"):
        parse_topology("geforcertx4090x2-2x1-tcp")


def test_no_gpu_is_the_cpu_machine():
    assert detected_machine([], 0, nvlink=False) is CPU
    assert find_machine("cpu") is CPU


def test_every_instance_type_has_a_dated_price_and_no_other_region_has_one():
    for machine in NAMED_MACHINES:
        if machine.instance_type is not None:
            assert usd_per_hour(machine.name, ON_DEMAND.region) is not None
            assert usd_per_hour(machine.name, "eu-central-1") is None
