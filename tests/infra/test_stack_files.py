"""The stack files: one per arm of the seeds, each valid under both readers, each telling what it costs."""

import re

import pytest

from tests.pulumi_engine import ROOT, read_stack, registered, stack_names
from workloads.catalogue.prices import usd_per_hour
from workloads.catalogue.topologies import NAMED_TOPOLOGIES, parse_topology
from workloads.catalogue.versions import SEED_IMAGE
from workloads.planning.plan import Plan, plan
from workloads.planning.spec import ImageBase, Run
from workloads.planning.stack_file import parse_stack_file

ON_EC2 = {row.name: row for row in NAMED_TOPOLOGIES if not parse_topology(row.name).machine.is_local}
ARMS = [name for name, row in ON_EC2.items() if row.model != "llama-3.2-1b"]
ONE_NODE_OR_TWO = {"p4d24xl-1x8-efa4", "p4d24xl-2x8-efa4", "p4d24xl-2x8-efa4-hostnet", "p4d24xl-8x1-tcp"}
COMPARED = [
    (name, other) for name in stack_names() for other in read_stack(name).config["topolab:run"].get("comparedWith", [])
]


def text_of(name: str) -> str:
    return (ROOT / f"Pulumi.{name}.yaml").read_text(encoding="utf-8")


def test_every_arm_of_the_seeds_and_of_fairness_has_a_stack_of_its_name_and_dev_is_the_cheapest():
    assert stack_names() == sorted([*ARMS, "dev"])
    assert all(read_stack(name).config["topolab:topology"] == name for name in ARMS)
    assert read_stack("dev").config["topolab:topology"] == "g6e8xl-2x1-efa1"


@pytest.mark.parametrize("name", stack_names())
def test_pulumi_and_the_command_line_read_the_same_stack(name):
    file = parse_stack_file(text_of(name), name)
    planned = plan(file.stack, region=file.region, experiment=name, arm=file.stack.topology)
    assert registered(name).outputs["trainJob"] == planned.job_name
    config = registered(name).one("ConfigMap", "configmap-config").inputs["data"]["config.json"]
    assert config == planned.config.model_dump_json(indent=2) + "\n"


@pytest.mark.parametrize("name", stack_names())
def test_a_file_begins_with_what_it_shows_and_what_an_hour_costs(name):
    file = parse_stack_file(text_of(name), name)
    topology = parse_topology(file.stack.topology)
    row = ON_EC2[topology.name]
    price = usd_per_hour(topology.machine.name, file.region or "")
    assert price is not None
    shows, costs = text_of(name).splitlines()[:2]
    assert shows == f"# {_whose(name, row.seed)}: {row.shows}."
    nodes, hour = topology.nodes, topology.nodes * price
    assert costs == f"# {nodes} x {topology.machine.name}: about {hour:.2f} USD an hour while the GPU nodes are up."


@pytest.mark.parametrize("name", ARMS)
def test_an_arm_runs_its_model_and_recipe_and_a_seeds_arm_its_image(name):
    file, row = parse_stack_file(text_of(name), name), ON_EC2[name]
    assert (file.stack.run.model, file.stack.run.recipe, file.stack.run.steps) == (row.model, row.recipe, 50)
    of_the_seeds = row.recipe.startswith("seed-")
    assert ("base: " in text_of(name)) is of_the_seeds
    assert (SEED_IMAGE in text_of(name)) is of_the_seeds


@pytest.mark.parametrize("name", stack_names())
def test_budget_and_deadline_leave_room_but_not_much(name):
    file = parse_stack_file(text_of(name), name)
    planned = plan(file.stack, region=file.region, experiment=name, arm=file.stack.topology)
    run_usd, budget = planned.prediction.cost.run_usd, file.stack.platform.budget_usd
    assert run_usd is not None
    assert budget is not None
    assert run_usd.high <= budget <= max(5, 2 * run_usd.high)
    # Nodes boot and pull a large image before the first step, and the deadline counts from the TrainJob on.
    assert planned.prediction.wall_clock_s.high + 3600 <= file.stack.platform.ttl_minutes * 60


@pytest.mark.parametrize(("name", "other"), COMPARED)
def test_stacks_that_are_compared_run_one_recipe(name, other):
    has_its_own = other in stack_names()
    one, two = _planned(name, None), _planned(other, None) if has_its_own else _planned(name, other)
    assert not has_its_own or one.topology.name in _run_of(other).compared_with
    ours, theirs = one.config.recipe, two.config.recipe
    assert (ours.zero, ours.micro_batch) == (theirs.zero, theirs.micro_batch)
    assert ours.activation_checkpointing == theirs.activation_checkpointing
    assert one.config.sequences_per_step == two.config.sequences_per_step


def test_the_comparisons_are_those_of_the_readme_and_of_the_seeds():
    assert {name: set(_run_of(name).compared_with) for name in stack_names() if _run_of(name).compared_with} == {
        "dev": {"g6e8xl-2x1-efa1", "g6e8xl-2x1-tcp", "g6e8xl-2x1-tcp-tuned"},
        **{name: ONE_NODE_OR_TWO - {name} for name in ONE_NODE_OR_TWO},
    }


def test_the_seeds_stacks_run_exactly_the_image_of_the_catalogue_and_no_other_stack_does():
    images = {name: parse_stack_file(text_of(name), name).stack.platform.image for name in stack_names()}
    seeds = {name for name in ARMS if ON_EC2[name].recipe.startswith("seed-")}
    assert {name: image.base for name, image in images.items() if isinstance(image, ImageBase)} == dict.fromkeys(
        seeds, SEED_IMAGE
    )


def test_no_file_holds_a_secret_or_an_account():
    for name in stack_names():
        assert re.findall(r"secure:|hf_|\b\d{12}\b", text_of(name)) == []


def _run_of(name: str) -> Run:
    return parse_stack_file(text_of(name), name).stack.run


def _planned(name: str, topology: str | None) -> Plan:
    """The plan of a stack file, or of the file with another topology set."""
    file = parse_stack_file(text_of(name), name)
    stack = file.stack if topology is None else file.stack.model_copy(update={"topology": topology})
    return plan(stack, region=file.region, experiment=name, arm=stack.topology)


def _whose(name: str, seed: str | None) -> str:
    return "Dev" if name == "dev" else seed or "Fairness"
