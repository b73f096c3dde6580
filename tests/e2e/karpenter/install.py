"""Karpenter in a cluster, installed by helm as the program installs it."""

from tests.e2e.cluster.helm import helm_install
from tests.e2e.karpenter.account import CLUSTER, QUEUE
from tests.e2e.site import Site

NAMESPACE = "kube-system"


def install_karpenter(site: Site) -> None:
    """CRDs, then the controller with the values of infra/karpenter.py: two replicas on two nodes."""
    values = (
        f"settings.clusterName={CLUSTER}",
        f"settings.interruptionQueue={QUEUE}",
        "serviceAccount.name=karpenter",
        "controller.resources.requests.cpu=500m",
        "controller.resources.requests.memory=1Gi",
        "controller.resources.limits.memory=1Gi",
    )
    helm_install(site, "karpenter-crd", namespace=NAMESPACE)
    helm_install(site, "karpenter", namespace=NAMESPACE, values=values, flags=["--skip-crds"])
