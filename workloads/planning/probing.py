"""How long the probe of a run takes, and what its figures mean for the step that was predicted."""

from trainer.config import TrainConfig
from workloads.catalogue.topologies import Topology, parse_topology
from workloads.planning.expectations import work_of_config
from workloads.planning.prediction import Range
from workloads.planning.step_time import step_time

_GPU_S, _GPU_ALONE_S = 20.0, 45.0
"""Before training; and of a probe-only run, whose sweeps go further. Setting up communicators comes on top."""
_CPU_S, _CPU_ALONE_S = 0.8, 8.0
"""The lab's default experiment spends two seconds on its probes, the one of a dialled link included."""

_SPREAD = 0.1
"""Each way around a ring's measured rate: a step's many calls don't all reach the sweep's best."""


def probe_s(topology: Topology, steps: int) -> float:
    """Seconds for the microbenchmarks before step 1."""
    if topology.machine.gpu is None:
        return _CPU_S if steps else _CPU_ALONE_S
    return _GPU_S if steps else _GPU_ALONE_S


def step_as_probed(config: TrainConfig, ring_bytes_per_s: float) -> Range | None:
    """Predicted seconds of a step with the ring's measured rate in place of the assumed one.

    None where the catalogue doesn't know the machine.
    """
    try:
        topology = parse_topology(config.topology)
    except ValueError:
        return None
    rate = Range(low=1 - _SPREAD, expected=1.0, high=1 + _SPREAD).scaled(ring_bytes_per_s / 1e9)
    return step_time(work_of_config(config, topology), ring_gb_per_s=rate).step_s
