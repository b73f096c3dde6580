"""Plans of named topologies, through the real parser and planner, with the few values that a test varies."""

from typing import Any

from workloads.catalogue.topologies import NAMED_TOPOLOGIES, parse_topology
from workloads.planning.plan import ArmInput, Plan, plan, plan_arms
from workloads.planning.spec import Stack, parse_stack
from workloads.rendering.bindings import Bindings, Document
from workloads.rendering.manifests import documents

REGION = "us-east-1"
DIGEST_IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/trainer@sha256:" + "0" * 64


def stack_of(topology: str, *, platform: dict[str, Any] | None = None, hf_token: bool = False, **run: Any) -> Stack:
    """The stack of a topology; a named one brings its own model and recipe."""
    local = parse_topology(topology).machine.is_local
    values = {
        "topology": topology,
        "platform": ({} if local else {"zone": "us-east-1b"}) | (platform or {}),
        "run": _run_of(topology) | run,
        "hfToken": hf_token,
    }
    return parse_stack(values, topology)


def planned(topology: str, *, platform: dict[str, Any] | None = None, hf_token: bool = False, **run: Any) -> Plan:
    """The plan of one topology, as its own stack."""
    stack = stack_of(topology, platform=platform, hf_token=hf_token, **run)
    region = None if parse_topology(topology).machine.is_local else REGION
    return plan(stack, region=region, experiment=topology, arm=topology)


def arms_of(*topologies: str, **run: Any) -> tuple[Plan, ...]:
    """The plans of one experiment that varies the topology."""
    arms = tuple(ArmInput(name=name, stack=stack_of(name, **run), region=REGION) for name in topologies)
    return plan_arms(arms, vary="topology", experiment="arms")


def _run_of(topology: str) -> dict[str, Any]:
    row = next((r for r in NAMED_TOPOLOGIES if r.name == topology), None)
    model, recipe = ("llama-3-8b", "auto") if row is None else (row.model, row.recipe)
    batch = {"globalBatchTokens": 2048, "sequenceLength": 128} if model == "tiny" else {}
    return {"model": model, "recipe": recipe, **batch}


def bindings_of(a_plan: Plan) -> Bindings:
    """Placeholders, and for a local machine a folder for the records."""
    local = a_plan.topology.machine.is_local
    return Bindings.local(records_path="/srv/topolab/records") if local else Bindings.placeholders()


def rendered(a_plan: Plan) -> dict[str, Document]:
    """The plan's documents by kind; a ConfigMap by `ConfigMap/<name>`."""
    result: dict[str, Document] = {}
    for document in documents(a_plan, bindings_of(a_plan)):
        kind = document["kind"]
        result[kind if kind != "ConfigMap" else f"ConfigMap/{document['metadata']['name']}"] = document
    return result
