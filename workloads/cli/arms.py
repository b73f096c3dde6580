"""From what a user names, a topology or a stack file, to its plan."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workloads.catalogue.prices import ON_DEMAND
from workloads.catalogue.topologies import NAMED_TOPOLOGIES, Topology, parse_topology
from workloads.planning.plan import Plan, plan
from workloads.planning.spec import parse_stack
from workloads.planning.stack_file import StackFile, parse_stack_file


def planned(what: str, *, model: str | None = None, recipe: str | None = None) -> Plan:
    """The plan of a stack file or of a topology by name; SpecError and ValueError say what is wrong."""
    if _is_file(what):
        if model or recipe:
            raise ValueError(f"{what}: a stack file names its own model and recipe; leave the options out")
        found, name = _read(Path(what)), stack_name(Path(what))
    else:
        found, name = _by_name(what, model, recipe), what
    return plan(found.stack, region=found.region, experiment=name, arm=found.stack.topology)


def stack_name(path: Path) -> str:
    """`Pulumi.dev.yaml` is the stack `dev`."""
    return path.stem.removeprefix("Pulumi.")


def _is_file(what: str) -> bool:
    return what.endswith((".yaml", ".yml")) or "/" in what


def _read(path: Path) -> StackFile:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise ValueError(f"{path}: can't be read ({reason}); give a stack file or a topology") from error
    return parse_stack_file(text, str(path))


def _by_name(name: str, model: str | None, recipe: str | None) -> StackFile:
    topology = parse_topology(name)
    run: dict[str, Any] = dict(_usual_run(topology))
    run |= {key: value for key, value in (("model", model), ("recipe", recipe)) if value}
    values: dict[str, Any] = {"topology": name, "run": run}
    region = None
    if not topology.machine.is_local:
        region = ON_DEMAND.region
        # Any zone: a prediction and a manifest by name stand for all of them.
        values["platform"] = {"zone": f"{region}a"}
    return StackFile(stack=parse_stack(values, name), region=region)


def _usual_run(topology: Topology) -> Mapping[str, Any]:
    """The run that the catalogue gives a named arm; for another name the smallest that means something."""
    row = next((row for row in NAMED_TOPOLOGIES if row.name == topology.name), None)
    if row is not None:
        usual: dict[str, Any] = {"model": row.model, "recipe": row.recipe}
    else:
        usual = {"model": "llama-3.2-1b" if topology.machine.gpu else "tiny", "recipe": "auto"}
    if usual["recipe"].startswith("seed-"):
        usual["steps"] = 50
    if usual["model"] == "tiny":
        usual |= {"sequenceLength": 128, "globalBatchTokens": 8 * 128 * topology.ranks}
    return usual
