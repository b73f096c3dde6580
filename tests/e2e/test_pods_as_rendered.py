"""The Pods that the real controllers make are those that `workloads.rendering.pods` says they make.

So whatever the fast tests say of a rendered Pod holds of the real one: environment, resources, tolerations, affinity
and volumes as the plan has them. A Pod exists before it is bound, so no node is needed.
"""

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from tests.e2e.cluster.api import Document
from tests.e2e.kubelet.defaults import without_defaults
from tests.e2e.kubelet.scene import Scene, exists, standing
from tests.source import ROOT
from workloads.cli.arms import planned, stack_name
from workloads.planning.plan import Plan
from workloads.rendering.bindings import Bindings
from workloads.rendering.manifests import namespace, service_account, topology_documents
from workloads.rendering.pods import LIVE_ONLY, pods

pytestmark = pytest.mark.e2e

WITHOUT_STACK = "cpu-2x1-tcp"
STACKS = [path.name for path in sorted(ROOT.glob("Pulumi.*.yaml"))]
_KINDS = ("ClusterTrainingRuntime", "TrainJob")
_WITHIN_S = 60.0


def plan_of(what: str) -> Plan:
    return planned(what if what == WITHOUT_STACK else str(ROOT / what))


def documents_of(plan: Plan) -> dict[str, Document]:
    # A late-bound value is a text to the controllers, whatever it says.
    bindings = (
        Bindings.local(records_path="/srv/records") if plan.topology.machine.is_local else Bindings.placeholders()
    )
    return {document["kind"]: document for document in topology_documents(plan, bindings) if document["kind"] in _KINDS}


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    with standing(tmp_path_factory.mktemp("site"), system_nodes=1, trainer=True) as scene:
        scene.apply([namespace(), service_account()])
        yield scene


def without_life(pod: Mapping[str, Any]) -> Document:
    """What isn't of a live controller and no default, with lists of variables by their order."""
    kept = copy.deepcopy(without_defaults(pod))
    for *folders, last in LIVE_ONLY:
        place = kept
        for folder in folders:
            place = place.get(folder, {})
        place.pop(last, None)
    return {"apiVersion": "v1", "kind": "Pod", **kept}


@pytest.mark.parametrize("what", [*STACKS, WITHOUT_STACK], ids=lambda what: stack_name(ROOT / what))
def test_real_pods_are_as_rendered(scene: Scene, what: str):
    plan = plan_of(what)
    documents = documents_of(plan)
    scene.apply([documents[kind] for kind in _KINDS])
    try:
        real = scene.await_pods(plan.job_name, plan.topology.pods, exists, _WITHIN_S)
        said = pods(documents["TrainJob"], documents["ClusterTrainingRuntime"])
        assert [without_life(pod) for pod in real] == [without_life(pod) for pod in said]
        # Not by being left out of both.
        assert all(pod["spec"]["containers"][0]["env"] for pod in real)
    finally:
        scene.remove(plan.job_name, plan.topology.name)
