"""Pods and arms as small as they can be, for the tests of the lab."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workloads.lab.arm import ArmOutcome, Bench, run_arm
from workloads.lab.capability import Capability
from workloads.lab.documents import References
from workloads.lab.events import Event
from workloads.lab.links import PodLink
from workloads.lab.pod_program import Surroundings

USER = Capability("user", True, "namespaces of an ordinary user")
ROOT = Capability("root", True, "namespaces of root")
LOOPBACK = Capability(None, False, "namespaces are refused here")

WITH_NAMESPACES = [USER, ROOT] if os.geteuid() == 0 else [USER]
EVERYWHERE = [*WITH_NAMESPACES, LOOPBACK]


def rights_name(capability: Capability) -> str:
    """The name of a test's case."""
    return capability.rights or "loopback"


LINK = PodLink(pod="p-0", address="10.90.0.1", namespace=0, interface="topolab0p0")


def pod(name: str, script: str = "pass", /, *args: str, **spec: Any) -> dict[str, Any]:
    """A pod that runs a Python script; `container` and `spec` patch it."""
    container = {"name": "node", "command": ["python", "-u", "-c", script], "args": list(args)}
    return {
        "metadata": {"name": name, "namespace": "topolab"},
        "spec": {
            "hostname": name,
            "subdomain": "job",
            "restartPolicy": "Never",
            "containers": [container | spec.pop("container", {})],
            **spec,
        },
    }


def surroundings(state: Path, **changes: Any) -> Surroundings:
    """What a node gives, all of it plain."""
    values: dict[str, Any] = {
        "state": state,
        "log": state / "log",
        "references": References({}, {}, {}),
        "link": LINK,
        "hosts": "127.0.0.1 localhost\n",
        "interpreter": Path("/usr/bin/python3"),
        "environment": {},
    }
    return Surroundings(**values | changes)


def arm(
    pods: Sequence[dict[str, Any]],
    out: Path,
    capability: Capability,
    documents: Sequence[dict[str, Any]] = (),
    rate: float | None = None,
    events: list[Event] | None = None,
    **bench: Any,
) -> ArmOutcome:
    """Run an arm without GPUs; its events are appended to `events`."""
    heard: list[Event] = [] if events is None else events
    return run_arm(pods, documents, rate, out, (), heard.append, Bench(capability=capability, **bench))


def log(outcome: ArmOutcome, index: int = 0) -> str:
    """What a pod printed."""
    return outcome.pods[index].log.read_text()
