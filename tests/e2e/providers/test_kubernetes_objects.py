"""Objects through the stand-in for pulumi-kubernetes, over gRPC, in a real API server."""

import time
from contextlib import suppress

import grpc
import pytest

from tests.e2e.children import free_port, wait_until
from tests.e2e.cluster.api import ApiError
from tests.e2e.faults import Fault, plan_faults
from tests.e2e.operations import read
from tests.e2e.providers import kubernetes_kinds as kinds
from tests.e2e.providers.kubernetes_engine import Entry, HalfMadeError
from tests.e2e.providers.values import UNKNOWN, Secret, opened

pytestmark = pytest.mark.e2e

NAMESPACE, CONFIG_MAP, SECRET = (f"kubernetes:core/v1:{kind}" for kind in ("Namespace", "ConfigMap", "Secret"))
VOLUME, CLAIM = (f"kubernetes:core/v1:{kind}" for kind in ("PersistentVolume", "PersistentVolumeClaim"))
THING = "kubernetes:tests.topolab.dev/v1:Thing"
FINALIZER = "tests.topolab.dev/hold"


def _named(kind, name, namespace=None, *, api="v1", **fields):
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **fields.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def _config_map(name, data, **fields):
    return _named("ConfigMap", name, "default", data=data, **fields)


def _thing(name, **spec):
    return _named("Thing", name, "default", api="tests.topolab.dev/v1", spec=spec)


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVED = "/apis/tests.topolab.dev/v1/namespaces/default/things"


def _crd():
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.tests.topolab.dev"},
        "spec": {
            "group": "tests.topolab.dev",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def _is_served(room):
    try:
        return room.api.exists(SERVED)
    except ApiError as error:
        if error.status == 429:  # a kind that has just been made says: come again
            return False
        raise


def _remove_crd(room):
    room.api.delete(f"{CRDS}/things.tests.topolab.dev")
    wait_until(lambda: not _is_served(room), 20, "Things are served no more")


@pytest.fixture(name="things")
def _things(room):
    """The CRD of a kind of our own."""
    if not _is_served(room):
        room.api.create(CRDS, _crd())
        wait_until(lambda: _is_served(room), 20, "Things are served")


@pytest.fixture(name="log")
def _log(room):
    """The operations of this test alone, as (verb, subject, outcome)."""
    before = len(read(room.site.operations))
    yield lambda: [(one.verb, one.subject, one.outcome) for one in read(room.site.operations)[before:]]
    plan_faults(room.site.faults, [])


def test_an_object_is_made_kept_and_changed(room, provider, log):
    wanted = _config_map("kept", {"a": "1", "b": "2"})
    entry = provider.create(CONFIG_MAP, "kept", wanted)
    assert entry.identifier == "default/kept"
    assert not provider.diff(entry, wanted).detailedDiff
    change = provider.diff(entry, _config_map("kept", {"a": "3"}))
    assert (sorted(change.detailedDiff), list(change.replaces)) == (["data.a", "data.b"], [])
    provider.update(entry, _config_map("kept", {"a": "3"}))
    # Also what only the create had written is gone: its fields were handed over.
    assert room.api.get("/api/v1/namespaces/default/configmaps/kept")["data"] == {"a": "3"}
    assert not provider.diff(entry, _config_map("kept", {"a": "3"})).detailedDiff
    provider.delete(entry)
    assert not room.api.exists("/api/v1/namespaces/default/configmaps/kept")
    what = "ConfigMap/default/kept"
    assert log() == [("apply", what, "ok"), ("apply", what, "ok"), ("delete", what, "ok"), ("deleted", what, "ok")]


def test_an_object_that_is_there_already_is_refused_unless_it_may_be_adopted(room, provider):
    wanted = _config_map("there", {"a": "1"})
    provider.create(CONFIG_MAP, "there", wanted)
    with pytest.raises(grpc.RpcError, match='configmaps "there" already exists'):
        provider.create(CONFIG_MAP, "again", wanted)
    adopting = room.provider(upsertExistingObjects="true", enablePatchForce="true")
    assert adopting.create(CONFIG_MAP, "again", _config_map("there", {"a": "2"})).outputs["data"] == {"a": "2"}


def test_a_preview_asks_the_server_and_changes_nothing(room, provider):
    wanted = _config_map("foreseen", {"a": "1"})
    assert provider.preview(Entry(CONFIG_MAP, "foreseen"), wanted)["metadata"]["creationTimestamp"]
    assert not room.api.exists("/api/v1/namespaces/default/configmaps/foreseen")
    entry = provider.create(CONFIG_MAP, "foreseen", wanted)
    assert provider.preview(entry, _config_map("foreseen", {"a": "2"}))["data"] == {"a": "2"}
    assert room.api.get("/api/v1/namespaces/default/configmaps/foreseen")["data"] == {"a": "1"}


@pytest.mark.parametrize(
    "wanted",
    [
        _named("ConfigMap", "a", "not-yet", data={"a": "1"}),
        _named("NodePool", "a", api="karpenter.sh/v1", spec={"limits": {}}),
        _config_map("a", {"a": UNKNOWN}),
    ],
)
def test_a_preview_of_what_the_server_cannot_know_yet_is_the_inputs(provider, wanted):
    token = CONFIG_MAP if wanted["kind"] == "ConfigMap" else "kubernetes:karpenter.sh/v1:NodePool"
    foreseen = provider.preview(Entry(token, "early"), wanted)
    assert "uid" not in foreseen["metadata"]
    assert foreseen.items() >= {key: wanted[key] for key in wanted.keys() - {"metadata"}}.items()


def test_a_preview_says_what_the_server_would_refuse(provider):
    with pytest.raises(grpc.RpcError, match=r"can't be created, says a dry run .* Invalid value"):
        provider.preview(Entry(CONFIG_MAP, "bad"), _config_map("bad", {"not a key!": "1"}))


def test_an_object_without_a_name_gets_one_that_stays(provider):
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"a": "1"}}
    entry = provider.create(CONFIG_MAP, "nameless", wanted)
    assert entry.identifier.startswith("default/nameless-")
    assert not provider.diff(entry, wanted).detailedDiff
    change = provider.diff(entry, {**wanted, "immutable": True, "data": {"a": "2"}})
    assert (list(change.replaces), change.deleteBeforeReplace) == (["data"], False)


def test_a_named_object_is_deleted_before_its_replacement(provider):
    volume = _named(
        "PersistentVolume", "fsx", spec={
            "capacity": {"storage": "1200Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "",
            "csi": {"driver": "fsx.csi.aws.com", "volumeHandle": "fs-1"},
        },
    )  # fmt: skip
    entry = provider.create(VOLUME, "volume", volume)
    assert not provider.diff(entry, volume).detailedDiff
    volume["spec"] = {**volume["spec"], "csi": {"driver": "fsx.csi.aws.com", "volumeHandle": "fs-2"}}
    change = provider.diff(entry, volume)
    assert (list(change.replaces), change.deleteBeforeReplace) == (["spec"], True)
    provider.delete(entry)


def test_a_claim_is_ready_when_it_is_bound(provider):
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "", "capacity": {"storage": "1Gi"}}
    volume = _named("PersistentVolume", "bound", spec={**spec, "hostPath": {"path": "/x"}})
    provider.create(VOLUME, "bound", volume)
    claim = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "volumeName": "bound",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    made = provider.create(CLAIM, "bound", _named("PersistentVolumeClaim", "bound", "default", spec=claim))
    assert made.outputs["status"]["phase"] == "Bound"
    nobody = _named("PersistentVolumeClaim", "lone", "default", spec={**claim, "volumeName": "missing"})
    with pytest.raises(HalfMadeError, match="isn't ready after 1 s: its phase is Pending, not Bound") as raised:
        provider.create(CLAIM, "lone", nobody, timeout_s=1)
    assert raised.value.kept.identifier == "default/lone"


def test_a_secret_is_written_and_shown_nowhere(room, provider):
    wanted = _named("Secret", "token", "default", stringData={"token": "hf_neverseen"})
    entry = provider.create(SECRET, "token", wanted)
    assert isinstance(entry.outputs["data"], Secret)
    assert not provider.diff(entry, wanted).detailedDiff
    room.api.patch("/api/v1/namespaces/default/secrets/token", {"stringData": {"token": "hf_other"}})
    assert provider.refresh(entry)
    assert list(provider.diff(entry, wanted).detailedDiff) == ["stringData.token"]
    written = [path for path in (*room.site.logs.iterdir(), room.site.operations) if "provider" in path.name]
    assert written
    assert not [path for path in written if "neverseen" in path.read_text()]


def test_a_refresh_sees_what_others_changed_and_deleted(room, provider):
    wanted = _named("Namespace", "drift", metadata={"labels": {"team": "topolab"}})
    entry = provider.create(NAMESPACE, "drift", wanted)
    assert provider.refresh(entry)
    assert not provider.diff(entry, wanted).detailedDiff
    room.api.patch("/api/v1/namespaces/drift", {"metadata": {"labels": {"team": "other", "theirs": "1"}}})
    assert provider.refresh(entry)
    assert list(provider.diff(entry, wanted).detailedDiff) == ["metadata.labels.team"]
    with pytest.raises(grpc.RpcError, match="Server-Side Apply field conflict detected"):
        provider.update(entry, wanted)
    provider.delete(entry)
    assert not provider.refresh(entry)


@pytest.mark.usefixtures("things")
def test_a_custom_resource_waits_for_what_it_states(room, provider, background):
    wanted = _thing("waited", size=1)
    wanted["metadata"]["annotations"] = {kinds.WAIT_FOR: "condition=Ready"}
    with pytest.raises(HalfMadeError, match="isn't ready after 1 s: it has no condition Ready yet"):
        provider.create(THING, "waited", wanted, timeout_s=1)
    assert any("waiting for Thing/default/waited" in message for message in provider.told.messages)
    wanted["metadata"]["name"] = "late"
    made = background(provider.create, THING, "late", wanted, timeout_s=30)
    wait_until(lambda: room.api.exists(f"{SERVED}/late"), 10, "it is made")
    room.api.patch(f"{SERVED}/late", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    assert made.result(30).outputs["status"]["conditions"]


@pytest.mark.usefixtures("things")
def test_a_custom_resource_is_changed_in_place_and_an_unknown_field_conflicts_with_its_schema(provider):
    entry = provider.create(THING, "changed", _thing("changed", size=1))
    assert not provider.diff(entry, _thing("changed", size=2)).replaces
    provider.update(entry, _thing("changed", size=2))
    assert entry.outputs["spec"] == {"size": 2}
    with pytest.raises(grpc.RpcError, match=r"\.spec\.sise: field not declared in schema"):
        provider.update(entry, _thing("changed", sise=2))


@pytest.mark.usefixtures("things")
def test_a_create_drops_an_unknown_field_as_the_real_provider_does(provider):
    # By POST with field validation Warn: nobody is told. The checks of our own manifests must catch it.
    assert provider.create(THING, "typo", _thing("typo", sise=2)).outputs["spec"] == {}


def test_a_custom_resource_is_tried_again_until_its_crd_is_there(room, provider, background, log):
    if _is_served(room):
        _remove_crd(room)
    made = background(provider.create, THING, "early", _thing("early", size=1))
    wait_until(made.running, 5, "it was asked for")
    room.api.create(CRDS, _crd())
    assert made.result(30).identifier == "default/early"
    assert log() == [("apply", "Thing/default/early", "ok")]


def test_a_custom_resource_without_a_crd_is_refused_in_the_end(room, background):
    provider = room.provider()
    wanted = _named("Missing", "m", "default", api="tests.topolab.dev/v1")
    made = background(provider.create, "kubernetes:tests.topolab.dev/v1:Missing", "m", wanted)
    wait_until(made.running, 5, "it was asked for")
    provider.cancel()
    with pytest.raises(grpc.RpcError, match="no matches for kind 'Missing' in version 'tests"):
        made.result(10)


@pytest.mark.usefixtures("things")
def test_a_custom_resource_whose_crd_is_gone_counts_as_deleted_and_the_log_says_so(room, provider):
    entry = provider.create(THING, "orphan", _thing("orphan", size=1))
    _remove_crd(room)
    provider.delete(entry)
    assert not provider.refresh(entry)
    (deleted,) = [one for one in read(room.site.operations) if one.subject == "Thing/default/orphan"][2:]
    assert (deleted.verb, deleted.details) == ("deleted", {"kind": "gone"})


def test_a_delete_waits_for_finalizers(room, provider, background, log):
    entry = provider.create(CONFIG_MAP, "held", _config_map("held", {}, metadata={"finalizers": [FINALIZER]}))
    gone = background(provider.delete, entry)
    told = f"waiting for ConfigMap/default/held to be gone: finalizers {FINALIZER}, foregroundDeletion"
    wait_until(lambda: any(FINALIZER in message for message in provider.told.messages), 10, told)
    assert not gone.done()
    assert ("deleted", "ConfigMap/default/held", "ok") not in log()
    _release(room, "held")
    gone.result(20)
    assert log()[-2:] == [("delete", "ConfigMap/default/held", "ok"), ("deleted", "ConfigMap/default/held", "ok")]


def test_a_delete_that_takes_too_long_names_the_finalizers(room, provider, log):
    entry = provider.create(CONFIG_MAP, "stuck", _config_map("stuck", {}, metadata={"finalizers": [FINALIZER]}))
    with pytest.raises(
        grpc.RpcError, match=f"is still there 1 s after its deletion was asked for: finalizers .*{FINALIZER}"
    ):
        provider.delete(entry, timeout_s=1)
    assert log()[-1] == ("deleted", "ConfigMap/default/stuck", "Refused")
    _release(room, "stuck")
    provider.delete(entry)


def test_a_delete_is_in_the_foreground(room, provider, background):
    owner = provider.create(CONFIG_MAP, "owner", _config_map("owner", {}))
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": opened(owner.outputs)["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
    owned = {"finalizers": [FINALIZER], "ownerReferences": [reference]}
    provider.create(CONFIG_MAP, "owned", _config_map("owned", {}, metadata=owned))
    gone = background(provider.delete, owner)
    path = "/api/v1/namespaces/default/configmaps/owned"
    wait_until(lambda: "deletionTimestamp" in room.api.get(path)["metadata"], 60, "what it owns is being deleted")
    assert not gone.done()
    _release(room, "owned")
    gone.result(60)


def test_a_namespace_that_does_not_end_says_what_is_in_it(room, provider):
    entry = provider.create(NAMESPACE, "full", _named("Namespace", "full"))
    held = _named("ConfigMap", "held", "full", data={}, metadata={"finalizers": [FINALIZER]})
    inside = provider.create(CONFIG_MAP, "inside", held)
    with pytest.raises(grpc.RpcError, match=f"Namespace/full is still there .*{FINALIZER} in 1 resource instances"):
        provider.delete(entry, timeout_s=8)
    _release(room, "held", "full")
    provider.delete(inside)
    provider.delete(entry, timeout_s=60)


def test_a_delete_of_what_is_gone_is_fine(room, provider):
    entry = provider.create(CONFIG_MAP, "gone", _config_map("gone", {}))
    room.api.delete("/api/v1/namespaces/default/configmaps/gone")
    provider.delete(entry)


def test_a_fault_is_met_before_the_call_and_stands_in_the_log(room, provider, log):
    plan_faults(
        room.site.faults, [Fault(who="kubernetes", match="apply ConfigMap/default/faulty", error="no quota left")]
    )
    with pytest.raises(grpc.RpcError, match="no quota left"):
        provider.create(CONFIG_MAP, "faulty", _config_map("faulty", {}))
    assert not room.api.exists("/api/v1/namespaces/default/configmaps/faulty")
    provider.create(CONFIG_MAP, "faulty", _config_map("faulty", {}))
    assert [outcome for *_, outcome in log()] == ["Refused", "ok"]


def _release(room, name, namespace="default"):
    path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"

    def released():
        kept = [one for one in room.api.get(path)["metadata"]["finalizers"] if one != FINALIZER]
        with suppress(ApiError):  # 422: the garbage collector took its own away in between
            room.api.patch(path, {"metadata": {"finalizers": kept}})
            return True
        return False

    wait_until(released, 10, f"{name} is released")


def _elsewhere(room):
    """A kubeconfig of a cluster where nobody is at home."""
    return room.site.kubeconfig.read_text().replace(room.plane.server, f"https://127.0.0.1:{free_port()}")


def test_an_unreachable_cluster_is_an_error_with_the_way_out(room, provider):
    entry = provider.create(CONFIG_MAP, "lost", _config_map("lost", {}))
    lost = room.provider(kubeconfig=_elsewhere(room), environment={"PULUMI_K8S_CLIENT_TIMEOUT": "1"})
    sentence = "configured Kubernetes cluster is unreachable: .*PULUMI_K8S_DELETE_UNREACHABLE"
    with pytest.raises(grpc.RpcError, match=sentence):
        lost.refresh(entry)
    with pytest.raises(grpc.RpcError, match=sentence):
        lost.delete(entry)
    with pytest.raises(grpc.RpcError, match="configured Kubernetes cluster is unreachable"):
        lost.create(CONFIG_MAP, "more", _config_map("more", {}))
    # A preview goes on without the server, as the real one's.
    assert lost.preview(Entry(CONFIG_MAP, "more"), _config_map("more", {"a": "1"}))["data"] == {"a": "1"}


@pytest.mark.parametrize(
    "how", [{"deleteUnreachable": "true"}, {"environment": {"PULUMI_K8S_DELETE_UNREACHABLE": "true"}}]
)
def test_objects_of_an_unreachable_cluster_are_dropped_where_the_user_says_so(room, provider, how):
    name = f"dropped-{len(how.get('environment', ()))}"
    entry = provider.create(CONFIG_MAP, name, _config_map(name, {}))
    lost = room.provider(kubeconfig=_elsewhere(room), **how)
    began = time.monotonic()
    lost.delete(entry)
    assert not lost.refresh(entry)
    assert time.monotonic() - began < 5
    assert room.api.exists(f"/api/v1/namespaces/default/configmaps/{name}")


def test_an_api_server_that_is_away_for_a_while_is_waited_for(room, provider, background):
    entry = provider.create(CONFIG_MAP, "patient", _config_map("patient", {"a": "1"}))
    room.plane.stop_api_server()
    made = background(provider.create, CONFIG_MAP, "meanwhile", _config_map("meanwhile", {}))
    changed = background(provider.update, entry, _config_map("patient", {"a": "2"}))
    room.plane.start_api_server()
    assert made.result(60).identifier == "default/meanwhile"
    changed.result(60)
    assert opened(entry.outputs)["data"] == {"a": "2"}
