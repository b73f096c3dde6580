"""One topology's rendered documents with a pool of their own, so that all topologies can be launched at once."""

import copy
from dataclasses import dataclass
from typing import Any

from tests.e2e.cluster.api import Api
from tests.e2e.karpenter.account import KarpenterAccount
from tests.plan_factory import planned
from workloads.planning.plan import NAMESPACE, Plan
from workloads.rendering.manifests import documents
from workloads.rendering.pods import pods

ZONE = "us-east-1b"
_POOL = "karpenter.sh/nodepool"
_KINDS = ("Namespace", "ServiceAccount", "EC2NodeClass", "NodePool")
Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Arm:
    """What a test may change before it is applied."""

    plan: Plan
    pool: str
    by_kind: dict[str, Document]
    pods: list[Document]
    files: list[Document]
    """ConfigMaps that the pods mount."""

    @property
    def selector(self) -> str:
        """Of its pods."""
        return f"jobset.sigs.k8s.io/jobset-name={self.plan.job_name}"

    def apply(self, api: Api) -> None:
        """Platform and TrainJob as they were rendered, and the pods that the controllers would make of them."""
        for kind in _KINDS:
            api.apply(self.by_kind[kind])
        api.apply(self.by_kind["TrainJob"])
        for pod in self.pods:
            api.create(f"/api/v1/namespaces/{NAMESPACE}/pods", pod)

    def submit(self, api: Api) -> None:
        """Platform, runtime, configuration and TrainJob, for the controllers to make the pods."""
        for kind in (*_KINDS, "ClusterTrainingRuntime"):
            api.apply(self.by_kind[kind])
        for document in self.files:
            api.apply(document)
        api.apply(self.by_kind["TrainJob"])

    def live_pods(self, api: Api) -> list[Document]:
        """Its pods as they are now."""
        return api.items(f"/api/v1/namespaces/{NAMESPACE}/pods", labelSelector=self.selector)

    def phases(self, api: Api) -> set[str]:
        """Of its pods."""
        return {pod["status"]["phase"] for pod in self.live_pods(api)}

    def nodes(self, api: Api) -> list[Document]:
        """Those of its pool."""
        return api.items("/api/v1/nodes", labelSelector=f"{_POOL}={self.pool}")

    def claims(self, api: Api) -> list[Document]:
        """Those of its pool."""
        return api.items("/apis/karpenter.sh/v1/nodeclaims", labelSelector=f"{_POOL}={self.pool}")


def arm_of(
    topology: str, account: KarpenterAccount, *, attempt: int, suffix: str, capacity: Document | None = None
) -> Arm:
    """The arm as it is rendered, but for the name of its pool: pools belong to instance types, which arms share."""
    plan = planned(topology, attempt=attempt, platform=None if capacity is None else {"capacity": capacity})
    rendered = copy.deepcopy(documents(plan, account.bindings(ZONE)))
    by_kind = {one["kind"]: one for one in rendered}
    pool = f"{by_kind['NodePool']['metadata']['name']}-{suffix}"
    for kind in ("NodePool", "EC2NodeClass"):
        by_kind[kind]["metadata"]["name"] = pool
    by_kind["NodePool"]["spec"]["template"]["spec"]["nodeClassRef"]["name"] = pool
    (job,) = by_kind["ClusterTrainingRuntime"]["spec"]["template"]["spec"]["replicatedJobs"]
    selector = job["template"]["spec"]["template"]["spec"]["nodeSelector"]
    assert selector[_POOL] != pool
    selector[_POOL] = pool
    made = pods(by_kind["TrainJob"], by_kind["ClusterTrainingRuntime"])
    files = [one for one in rendered if one["kind"] == "ConfigMap"]
    return Arm(plan=plan, pool=pool, by_kind=by_kind, pods=made, files=files)
