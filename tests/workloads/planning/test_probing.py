"""How long a probe takes, and what its rate means for the step."""

import pytest

from tests.plan_factory import planned
from workloads.catalogue.topologies import NAMED_TOPOLOGIES
from workloads.planning.probing import step_as_probed


@pytest.mark.parametrize("name", [row.name for row in NAMED_TOPOLOGIES])
def test_the_probe_takes_a_minute_at_most_and_in_the_lab_under_two_seconds(name: str) -> None:
    training, alone = planned(name), planned(name, steps=0)
    assert 0 < training.config.probe_s < alone.config.probe_s <= 60
    if training.topology.machine.gpu is None:
        assert training.config.probe_s <= 1


def test_a_probe_only_plan_trains_nothing_and_costs_its_start_and_its_probe() -> None:
    alone, training = planned("g6e8xl-2x1-efa1", steps=0), planned("g6e8xl-2x1-efa1", steps=200)
    assert (alone.config.steps, alone.config.warmup_steps) == (0, 0)
    assert alone.prediction.step == training.prediction.step
    assert alone.prediction.wall_clock_s.expected < 0.5 * training.prediction.wall_clock_s.expected
    assert alone.prediction.wall_clock_s.expected > alone.config.probe_s / 2


def test_a_slower_ring_than_assumed_makes_a_slower_step() -> None:
    plan = planned("g6e8xl-2x1-efa1")
    slow, fast = step_as_probed(plan.config, 1e9), step_as_probed(plan.config, 10e9)
    assert slow is not None
    assert fast is not None
    assert slow.expected > plan.prediction.step.step_s.expected > fast.expected
    assert slow.low < slow.expected < slow.high


def test_a_machine_that_the_catalogue_doesn_t_know_gets_no_prediction() -> None:
    config = planned("cpu-2x1-tcp").config.model_copy(update={"topology": "mine-2x1-tcp"})
    assert step_as_probed(config, 1e9) is None
