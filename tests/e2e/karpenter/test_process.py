"""What Karpenter's process is given over its pod."""

import yaml

from tests.e2e.karpenter.process import karpenter_environment
from tests.e2e.karpenter.rights import kwok_rights

UPSTREAM = """\
kind: ClusterRole
metadata: {name: extra}
rules: [{apiGroups: [""], resources: [nodes], verbs: [create]}]
---
kind: ClusterRoleBinding
metadata: {name: extra}
roleRef: {kind: ClusterRole, name: extra}
subjects: [{kind: ServiceAccount, name: kwok-karpenter, namespace: $KARPENTER_NAMESPACE}]
"""


def test_replicas_get_ports_of_their_own_and_elect_a_leader_in_their_namespace():
    given = {"SYSTEM_NAMESPACE": "kube-system", "METRICS_PORT": "8080", "CLUSTER_NAME": "c"}
    assert karpenter_environment(given, {8080: 31000, 8081: 31001}) == {
        "METRICS_PORT": "31000",
        "HEALTH_PROBE_PORT": "31001",
        "LEADER_ELECTION_NAMESPACE": "kube-system",
    }


def test_upstreams_own_rights_go_to_the_programs_service_account(tmp_path):
    manifest = tmp_path / "kwok/manifests/clusterrole.yaml"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(UPSTREAM)
    role, binding = kwok_rights(lambda _: tmp_path)
    assert role == next(yaml.safe_load_all(UPSTREAM))
    assert binding["roleRef"] == {"kind": "ClusterRole", "name": "extra"}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "karpenter", "namespace": "kube-system"}]
