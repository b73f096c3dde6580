"""The rendered documents of each named topology, one YAML file each; `python -m tests.goldens` rewrites them.

A golden shows what a change of a plan or of a manifest does to every arm. The trainer's code is left out: an
edit of the trainer is no change of a manifest.
"""

from pathlib import Path

from tests.plan_factory import bindings_of, planned
from workloads.catalogue.topologies import NAMED_TOPOLOGIES
from workloads.rendering.manifests import documents
from workloads.rendering.names import code_map_name
from workloads.rendering.yaml_text import to_yaml

FOLDER = Path(__file__).parent
UNNAMED = ("p4d24xl-4x1-tcp-hostipc",)
"""Variants that change a manifest and that no named topology has."""
NAMES = (*(row.name for row in NAMED_TOPOLOGIES), *UNNAMED)


def golden(topology: str) -> str:
    """What the file of the topology should hold."""
    plan = planned(topology)
    code = code_map_name(plan.topology)
    elided = {"elided": "the trainer's modules and, for an image, the lock of its packages"}
    rendered = documents(plan, bindings_of(plan))
    return to_yaml({**d, "data": elided} if d["metadata"]["name"] == code else d for d in rendered)
