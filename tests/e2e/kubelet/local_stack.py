"""The stack file of a run on this machine, as a user would write it."""

from pathlib import Path

import yaml

from workloads.planning.spec import Stack
from workloads.planning.stack_file import parse_stack_file

TOPOLOGY = "cpu-2x1-tcp"
STEPS = 40


def stack_file(records: Path) -> str:
    """Its text: two pods, a tiny model, embedded data; records in a folder of this machine."""
    config = {
        "topolab:topology": TOPOLOGY,
        "topolab:platform": {"records": records.as_uri()},
        "topolab:run": {
            "model": "tiny",
            "globalBatchTokens": 1024,
            "sequenceLength": 128,
            "steps": STEPS,
            "warmupSteps": 5,
        },
    }
    return yaml.safe_dump({"config": config})


def stack(records: Path, attempt: int, restarts: int = 0) -> Stack:
    """The same as the planner reads it, with another attempt, and restarts where it is to have some."""
    read = parse_stack_file(stack_file(records), "the local stack").stack
    return read.model_copy(update={"run": read.run.model_copy(update={"attempt": attempt, "restarts": restarts})})
