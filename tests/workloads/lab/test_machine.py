"""What nvidia-smi shows becomes a machine of the catalogue."""

from workloads.catalogue.machines import CPU
from workloads.lab.machine import machine_of

FOUR_H200 = "NVIDIA H200, 143771\n" * 4
NVLINK = """\
\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity
GPU0\t X \tNV18\tNV18\tNV18\t0-63
GPU1\tNV18\t X \tNV18\tNV18\t0-63
GPU2\tNV18\tNV18\t X \tNV18\t0-63
GPU3\tNV18\tNV18\tNV18\t X \t0-63
"""


def test_four_joined_gpus():
    machine = machine_of(FOUR_H200, NVLINK)
    assert (machine.slug, machine.node_gpus) == ("h200x4", 4)
    assert machine.gpu is not None
    assert machine.gpu.intra_node_link == "nvlink"
    assert machine.gpu.memory_mib == 143771


def test_one_pair_without_nvlink_makes_the_ring_pcie():
    machine = machine_of(FOUR_H200, NVLINK.replace("GPU3\tNV18", "GPU3\tSYS", 1))
    assert machine.gpu is not None
    assert machine.gpu.intra_node_link == "pcie"


def test_gpus_of_different_memory_count_as_the_smallest():
    machine = machine_of("NVIDIA H200, 143771\nNVIDIA H200, 100000\n", "")
    assert machine.gpu is not None
    assert machine.gpu.memory_mib == 100000


def test_no_answer_is_the_cpu_machine():
    assert machine_of("", "") is CPU
