"""Helm releases through the stand-in for pulumi-kubernetes, by the real helm, into a real API server."""

import shutil
from pathlib import Path

import grpc
import pytest

from tests.e2e.children import wait_until
from tests.e2e.faults import Fault, plan_faults
from tests.e2e.operations import read
from tests.e2e.providers.kubernetes_engine import HalfMadeError
from tests.e2e.providers.kubernetes_kinds import RELEASE

pytestmark = pytest.mark.e2e

EVERYWHERE = [{"operator": "Exists"}]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RECORDS = "/api/v1/namespaces/{namespace}/secrets"


def _release(room, chart, *, name=None, namespace="kube-system", values=None, **more):
    """As infra.charts.install asks for it."""
    return {
        "name": name or chart,
        "chart": str(room.site.charts / chart),
        "namespace": namespace,
        "values": values or {},
        "timeout": 60,
        "compat": "true",
        **more,
    }


def _log(room, subject):
    operations = [one for one in read(room.site.operations) if one.subject == subject]
    return [(one.who, one.verb, one.outcome) for one in operations]


@pytest.fixture(name="simple")
def _simple(room):
    """A chart with a ConfigMap that says a value, and, where replicas are asked for, a Deployment that nobody runs."""
    folder = room.site.charts / "simple"
    if not folder.exists():
        shutil.copytree(Path(__file__).parent / "simple_chart", folder)
    return "simple"


def test_a_release_is_installed_upgraded_and_uninstalled(room, provider, simple):
    wanted = _release(room, simple, namespace="first", createNamespace=True, values={"said": "hf_neverseen"})
    entry = provider.create(RELEASE, simple, wanted)
    assert entry.identifier == "first/simple"
    assert entry.outputs["status"]["status"] == "deployed"
    assert entry.outputs["resourceNames"] == {"ConfigMap/v1": ["simple"]}
    assert not provider.diff(entry, wanted).detailedDiff
    changed = {**wanted, "values": {"said": "two"}}
    change = provider.diff(entry, changed)
    assert (list(change.detailedDiff), list(change.replaces)) == (["values.said"], [])
    provider.update(entry, changed)
    assert entry.outputs["status"]["revision"] == 2
    assert room.api.get("/api/v1/namespaces/first/configmaps/simple")["data"] == {"said": "two"}
    # Helm keeps its history in Secrets of the namespace, one a revision.
    kept = room.api.items(RECORDS.format(namespace="first"), labelSelector="owner=helm,name=simple")
    assert len(kept) == 2
    provider.delete(entry)
    assert not room.api.exists("/api/v1/namespaces/first/configmaps/simple")
    assert not room.api.items(RECORDS.format(namespace="first"), labelSelector="owner=helm")
    assert _log(room, "first/simple") == [("helm", verb, "ok") for verb in ("install", "upgrade", "uninstall")]
    written = [*room.site.logs.glob("provider*"), room.site.operations, *(room.site.folder / "helm").rglob("*")]
    assert not [path for path in written if path.is_file() and b"neverseen" in path.read_bytes()]


def test_another_namespace_is_another_release(room, provider, simple):
    wanted = _release(room, simple, name="moved", values={"said": "one"})
    entry = provider.create(RELEASE, simple, wanted)
    assert list(provider.diff(entry, {**wanted, "namespace": "default"}).replaces) == ["namespace"]
    provider.delete(entry)


def test_a_failed_install_is_kept_and_the_next_up_upgrades_it(room, provider, simple):
    wanted = _release(room, simple, name="late", values={"said": "x", "replicas": 1}, timeout=2)
    with pytest.raises(HalfMadeError, match="'kube-system/late' was created, but failed to initialize") as raised:
        provider.create(RELEASE, "late", wanted)
    entry = raised.value.kept
    assert entry.outputs["status"]["status"] == "failed"
    provider.update(entry, {**wanted, "values": {"said": "x", "replicas": 0}, "timeout": 60})
    assert (entry.outputs["status"]["status"], entry.outputs["status"]["revision"]) == ("deployed", 2)
    provider.delete(entry)
    assert [outcome for *_, outcome in _log(room, "kube-system/late")] == ["Helm", "ok", "ok"]


def test_a_name_that_is_taken_is_refused_as_by_helm(room, provider, simple):
    wanted = _release(room, simple, name="taken", values={"said": "x"})
    entry = provider.create(RELEASE, "taken", wanted)
    with pytest.raises(grpc.RpcError, match="cannot re-use a name that is still in use"):
        provider.create(RELEASE, "again", wanted)
    provider.delete(entry)


def test_a_refresh_sees_a_release_that_was_changed_or_removed_by_hand(room, provider, simple):
    wanted = _release(room, simple, name="hand", values={"said": "one"})
    entry = provider.create(RELEASE, "hand", wanted)
    other = room.provider()
    other.update(entry, {**wanted, "values": {"said": "theirs"}})
    entry.inputs = wanted
    assert provider.refresh(entry)
    assert list(provider.diff(entry, wanted).detailedDiff) == ["values.said"]
    for record in room.api.items(RECORDS.format(namespace="kube-system"), labelSelector="owner=helm,name=hand"):
        room.api.delete(f"{RECORDS.format(namespace='kube-system')}/{record['metadata']['name']}")
    assert not provider.refresh(entry)


def test_values_that_a_stand_in_would_ignore_fail_the_install(room, provider):
    wanted = _release(room, "nvidia-device-plugin", name="typo", values={"toleration": EVERYWHERE})
    with pytest.raises(grpc.RpcError, match="additional properties 'toleration' not allowed"):
        provider.create(RELEASE, "typo", wanted)
    wanted["values"] = {"gfd": {"enabled": True}}
    with pytest.raises(grpc.RpcError, match=r"gfd\W+enabled"):
        provider.create(RELEASE, "typo", wanted)


@pytest.mark.parametrize(
    ("chart", "values", "tolerations"),
    [
        ("nvidia-device-plugin", {"gfd": {"enabled": False}, "tolerations": EVERYWHERE}, EVERYWHERE),
        (
            "aws-efa-k8s-device-plugin",
            {"tolerations": EVERYWHERE},
            [{"key": "CriticalAddonsOnly", "operator": "Exists"}, *EVERYWHERE],
        ),
    ],
)
def test_the_stand_ins_take_the_program_s_values(room, provider, chart, values, tolerations):
    entry = provider.create(RELEASE, chart, _release(room, chart, values=values))
    daemons = room.api.get(f"/apis/apps/v1/namespaces/kube-system/daemonsets/{chart}")
    assert daemons["spec"]["template"]["spec"]["tolerations"] == tolerations
    provider.delete(entry)


def test_a_chart_s_crds_can_be_used_in_the_same_up_and_outlive_nothing(room, provider):
    crds = provider.create(RELEASE, "karpenter-crd", _release(room, "karpenter-crd"))
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu"},
        "spec": {
            "template": {
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
                    "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}],
                }
            }
        },
    }
    entry = provider.create("kubernetes:karpenter.sh/v1:NodePool", "gpu", pool)
    assert entry.identifier == "gpu"
    assert not provider.diff(entry, pool).detailedDiff
    provider.delete(entry)
    provider.delete(crds)
    assert not room.api.exists(f"{CRDS}/nodepools.karpenter.sh")


def test_trainer_s_own_chart_installs_with_its_jobset(room, provider):
    # Nothing runs the controllers here, so their Deployments are not awaited.
    values = {"crds": {"enabled": True}, "jobset": {"install": True}, "runtimes": {"defaultEnabled": False}}
    wanted = _release(
        room, "kubeflow-trainer", namespace="kubeflow-system", createNamespace=True, values=values, skipAwait=True
    )
    entry = provider.create(RELEASE, "kubeflow-trainer", wanted)
    made = entry.outputs["resourceNames"]["Deployment/apps/v1"]
    assert made == ["kubeflow-system/jobset-controller", "kubeflow-system/kubeflow-trainer-controller-manager"]
    kind = f"{CRDS}/trainjobs.trainer.kubeflow.org"
    assert room.api.exists(kind)
    provider.delete(entry)
    wait_until(lambda: not room.api.exists(kind), 20, "its CRDs are gone")


def test_a_fault_is_met_before_helm(room, provider, simple):
    plan_faults(room.site.faults, [Fault(who="helm", match="install kube-system/faulty", error="registry says 403")])
    wanted = _release(room, simple, name="faulty", values={"said": "x"})
    with pytest.raises(grpc.RpcError, match="registry says 403"):
        provider.create(RELEASE, "faulty", wanted)
    provider.delete(provider.create(RELEASE, "faulty", wanted))
    plan_faults(room.site.faults, [])
    assert [outcome for *_, outcome in _log(room, "kube-system/faulty")] == ["Refused", "ok", "ok"]


def test_a_cancelled_install_leaves_a_failed_release(room, simple, background):
    provider = room.provider()
    wanted = _release(room, simple, name="stopped", values={"said": "x", "replicas": 1}, timeout=300)
    made = background(provider.create, RELEASE, "stopped", wanted)
    path = "/apis/apps/v1/namespaces/kube-system/deployments/stopped"
    wait_until(lambda: room.api.exists(path), 30, "helm waits for the Deployment")
    provider.cancel()
    with pytest.raises(HalfMadeError) as raised:
        made.result(30)
    assert raised.value.kept.outputs["status"]["status"] == "failed"
