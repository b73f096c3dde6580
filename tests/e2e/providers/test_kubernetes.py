"""What the stand-in for pulumi-kubernetes decides without a cluster."""

import base64
import json

import pytest
import yaml

from tests.e2e.providers import kubernetes_config as config
from tests.e2e.providers import kubernetes_kinds as kinds
from tests.e2e.providers import kubernetes_releases as releases
from tests.e2e.providers.kubernetes import Kubernetes
from tests.e2e.providers.kubernetes_engine import in_process
from tests.e2e.providers.kubernetes_helm import resource_names
from tests.e2e.providers.kubernetes_shape import bare, handed_over, is_created_by_us, seen, state
from tests.e2e.providers.kubernetes_waits import conditions
from tests.e2e.providers.serving import Found, RefusedError
from tests.e2e.providers.values import UNKNOWN, Secret, differences

LATE: dict[str, str] = {"late": "WaitForFirstConsumer"}
"""Binding mode by storage class."""
BOTH_MUTABLE = {"mutable_config_maps": True, "mutable_secrets": True}


def _kubeconfig(server="https://one:6443", **user):
    return json.dumps(
        {
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": user or {"token": "t"}}],
            "contexts": [
                {"name": "x", "context": {"cluster": "c", "user": "u"}},
                {"name": "y", "context": {"cluster": "c", "user": "u", "namespace": "runs"}},
            ],
            "current-context": "x",
        }
    )


@pytest.mark.parametrize(
    ("token", "api"),
    [
        ("kubernetes:core/v1:Secret", ("v1", "Secret")),
        ("kubernetes:karpenter.sh/v1:NodePool", ("karpenter.sh/v1", "NodePool")),
        ("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass", ("karpenter.k8s.aws/v1", "EC2NodeClass")),
        ("kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob", ("trainer.kubeflow.org/v1alpha1", "TrainJob")),
    ],
)
def test_a_type_token_says_which_api_serves_it(token, api):
    assert kinds.api_of(token) == api


@pytest.mark.parametrize(
    "token",
    ["kubernetes:apps/v1:Deployment", "kubernetes:core/v1:Pod", "kubernetes:helm.sh/v4:Chart",
     "kubernetes:rbac.authorization.k8s.io/v1:Role", "kubernetes:yaml/v2:ConfigGroup", "aws:ec2/vpc:Vpc"],
)  # fmt: skip
def test_a_type_that_the_stand_in_does_not_know_is_refused(token):
    with pytest.raises(RefusedError, match=f"has no type {token}"):
        kinds.api_of(token)


@pytest.mark.parametrize(
    ("kind", "changed", "replaced"),
    [
        ("Namespace", "metadata.labels.team", False),
        ("Namespace", "metadata.name", True),
        ("ConfigMap", "metadata.namespace", True),
        ("ConfigMap", 'data["config.json"]', False),
        ("Secret", "stringData.token", False),
        ("PersistentVolume", "spec.csi.volumeHandle", True),
        ("PersistentVolume", "spec.capacity.storage", False),
        ("PersistentVolume", "spec", True),
        ("PersistentVolumeClaim", "spec.accessModes[0]", True),
        ("PersistentVolumeClaim", "metadata.labels", False),
    ],
)
def test_what_replaces_an_object_is_the_real_provider_s_table(kind, changed, replaced):
    fields = kinds.replacing({"apiVersion": "v1", "kind": kind}, **BOTH_MUTABLE)
    assert (changed in kinds.replaced_by([changed], fields)) is replaced


def test_a_changed_spec_of_a_custom_resource_is_an_update():
    fields = kinds.replacing({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}, **BOTH_MUTABLE)
    assert not kinds.replaced_by(["spec.trainer.numNodes"], fields)


@pytest.mark.parametrize(
    ("document", "mutable", "replaced"),
    [
        ({"kind": "ConfigMap"}, False, True),
        ({"kind": "ConfigMap"}, True, False),
        ({"kind": "ConfigMap", "immutable": True}, True, True),
        ({"kind": "Secret"}, False, True),
        ({"kind": "Secret"}, True, False),
        ({"kind": "Secret", "immutable": True}, True, True),
    ],
)
def test_configuration_is_replaced_unless_the_program_lets_it_change(document, mutable, replaced):
    fields = kinds.replacing({"apiVersion": "v1", **document}, mutable_config_maps=mutable, mutable_secrets=mutable)
    assert bool(kinds.replaced_by(["data.key"], fields)) is replaced


def test_a_name_is_made_of_the_seed_so_preview_and_update_agree():
    assert kinds.autonamed("runs", b"one") == kinds.autonamed("runs", b"one")
    assert kinds.autonamed("runs", b"one") != kinds.autonamed("runs", b"two")
    assert kinds.autonamed("runs", b"") != kinds.autonamed("runs", b"")


def test_a_limit_is_the_program_s_then_the_annotation_s_then_the_kind_s():
    annotated = {"metadata": {"annotations": {kinds.TIMEOUT_SECONDS: "7"}}}
    assert kinds.limit_s(annotated, 3, 600) == 3
    assert kinds.limit_s(annotated, 0, 600) == 7
    assert kinds.limit_s({}, 0, 600) == 600


@pytest.mark.parametrize(("stated", "policy"), [("", "Foreground"), ("Background", "Background"), ("orphan", "Orphan")])
def test_a_deletion_goes_to_the_foreground_unless_the_object_says_otherwise(stated, policy):
    assert kinds.propagation({"metadata": {"annotations": {kinds.PROPAGATION: stated}}}) == policy


@pytest.mark.parametrize(
    ("asked", "status", "missing"),
    [
        ("condition=Ready", {}, "it has no condition Ready yet"),
        (
            "condition=Ready",
            {"conditions": [{"type": "Ready", "status": "False", "reason": "NoSubnet", "message": "none found"}]},
            "its condition Ready is False (NoSubnet: none found)",
        ),
        ("condition=ready", {"conditions": [{"type": "Ready", "status": "True"}]}, None),
        ("condition=Ready=False", {"conditions": [{"type": "Ready", "status": "False"}]}, None),
        ("jsonpath={.status.phase}=Bound", {"phase": "Pending"}, ".status.phase is Pending, not Bound"),
        ("jsonpath={.status.phase}=Bound", {"phase": "Bound"}, None),
        ("jsonpath={.status.phase}", {}, ".status.phase isn't there yet"),
        ("jsonpath={.status.jobs[0]['a.b/c']}=3", {"jobs": [{"a.b/c": 3}]}, None),
        (r"jsonpath={.status.a\.b}=x", {"a.b": "x"}, None),
        ('["jsonpath={.status.a}=1", "jsonpath={.status.b}=2"]', {"a": 1, "b": 3}, ".status.b is 3, not 2"),
    ],
)
def test_a_stated_wait_ends_when_its_expression_holds(asked, status, missing):
    document = {"apiVersion": "a.b/v1", "kind": "Thing", "metadata": {"annotations": {kinds.WAIT_FOR: asked}}}
    wanted = conditions(document, LATE.get)
    found = [holds({**document, "status": status}) for holds in wanted]
    assert next(filter(None, found), None) == missing


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("Ready", 'expected a "jsonpath=" or "condition=" prefix'),
        ("[1]", "no JSON list of expressions"),
        ("[]", "no JSON list of expressions"),
        ("jsonpath=.status.phase=Bound", "write {.field}"),
        ("jsonpath={.items[*].name}", "reads no"),
    ],
)
def test_a_wait_that_nobody_can_read_is_refused(asked, sentence):
    document = {"apiVersion": "a.b/v1", "kind": "Thing", "metadata": {"annotations": {kinds.WAIT_FOR: asked}}}
    with pytest.raises(RefusedError, match=sentence.replace("[", r"\[").replace("{", r"\{")):
        conditions(document, LATE.get)


def test_skipping_the_wait_skips_the_kind_s_own_too():
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {}, "spec": {"storageClassName": "late"}}
    (bound,) = conditions({**claim, "spec": {}}, LATE.get)
    (pending,) = conditions(claim, LATE.get)
    assert bound({"status": {"phase": "Pending"}}) == "its phase is Pending, not Bound"
    assert pending({"status": {"phase": "Pending"}}) is None
    claim["metadata"] = {"annotations": {kinds.SKIP_AWAIT: "true"}}
    assert conditions(claim, LATE.get) == []


def test_drift_shows_in_the_fields_that_the_program_sets():
    inputs = {"kind": "Thing", "metadata": {"name": "a", "labels": {"x": "1", "y": "2"}}, "spec": {"l": [{"a": 1}]}}
    live = {
        "kind": "Thing",
        "metadata": {"name": "a", "uid": "u", "labels": {"x": "9", "theirs": "3"}},
        "spec": {"l": [{"a": 1, "defaulted": 2}], "defaulted": True},
    }
    assert list(differences(seen(live, inputs), bare(inputs))) == [
        ("metadata.labels.x", "update"),
        ("metadata.labels.y", "add"),
    ]


def test_a_secret_is_compared_by_what_it_says_and_its_data_stay_secret():
    inputs = {"kind": "Secret", "metadata": {"name": "s"}, "stringData": {"token": "hf_one"}}
    live = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"token": base64.b64encode(b"hf_two").decode()}}
    assert seen(live, inputs)["stringData"] == {"token": "hf_two"}
    assert state(live, "m")["data"] == Secret(live["data"])


def test_nulls_and_what_only_the_server_sets_are_no_part_of_an_object():
    assert bare({"kind": "A", "spec": {"x": None, "y": [None, 1]}, "metadata": {"name": "a", "uid": "u"}}) == {
        "kind": "A",
        "spec": {"y": [1]},
        "metadata": {"name": "a"},
    }


def _managed(manager, operation, fields, **more):
    return {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields, **more}


def test_an_update_takes_over_what_our_create_and_kubectl_wrote():
    theirs = _managed("kubectl-edit", "Update", {"f:z": {}})
    status = _managed("pulumi-kubernetes", "Update", {"f:status": {}}, subresource="status")
    managed = [
        _managed("pulumi-kubernetes", "Update", {"f:data": {"f:x": {}}}),
        theirs,
        _managed("kubectl", "Apply", {"f:data": {"f:y": {}}}),
        status,
    ]
    assert is_created_by_us(managed)
    fields = handed_over(managed, "pulumi-kubernetes-1")
    assert fields == [_managed("pulumi-kubernetes-1", "Apply", {"f:data": {"f:x": {}, "f:y": {}}}), theirs, status]
    assert handed_over(fields, "pulumi-kubernetes-1") is None


@pytest.mark.parametrize(
    ("kubeconfig", "sentence"),
    [
        ("/nowhere/config", "no file '/nowhere/config'"),
        ("a: [\n", "no YAML"),
        ("apiVersion: v1\nkind: Config\n", "names no cluster"),
    ],
)
def test_a_kubeconfig_that_cannot_be_read_is_refused(kubeconfig, sentence):
    with pytest.raises(RefusedError, match=sentence):
        config.parse(kubeconfig)


def test_the_context_says_cluster_user_and_namespace():
    document = config.parse(_kubeconfig())
    assert config.target(document).namespace == "default"
    assert config.target(document, "y").namespace == "runs"
    assert config.target(document, "y", "mine").namespace == "mine"
    assert config.target(document).headers() == {"Authorization": "Bearer t"}
    with pytest.raises(RefusedError, match="no context 'z'"):
        config.target(document, "z")


def test_a_credential_plugin_is_refused():
    with pytest.raises(RefusedError, match="runs no credential plugin"):
        config.target(config.parse(_kubeconfig(exec={"command": "aws"})))


@pytest.fixture(name="engine")
def _engine():
    engine, server = in_process(Kubernetes("4.34.2"))
    yield engine
    server.stop(None)


def test_another_cluster_replaces_the_provider_and_other_credentials_do_not(engine):
    old = {"kubeconfig": _kubeconfig(), "enableServerSideApply": "true"}
    assert not engine.diff_config(old, {**old, "kubeconfig": _kubeconfig(token="u")}).replaces
    assert list(engine.diff_config(old, {**old, "kubeconfig": _kubeconfig("https://two:6443")}).replaces) == [
        "kubeconfig"
    ]
    assert list(engine.diff_config(old, {**old, "kubeconfig": UNKNOWN}).replaces) == ["kubeconfig"]
    assert not engine.diff_config(old, {**old, "context": "y"}).replaces


def test_a_setting_that_the_stand_in_would_ignore_is_refused(engine):
    assert engine.check_config(kubeconfig=_kubeconfig(), renderYamlToDirectory="x") == {
        "renderYamlToDirectory": "the stand-in kubernetes has no setting renderYamlToDirectory"
    }


def _release(**inputs):
    return releases.checked({"chart": "c", "name": "r", **inputs}, namespace="default", name="r-12345678")


def test_a_release_gets_the_real_provider_s_defaults(tmp_path):
    (tmp_path / "Chart.yaml").write_text("name: c\nversion: v0.5.30\n")
    inputs, failures = releases.checked(
        {"chart": str(tmp_path), "version": "0.5.30"}, namespace="default", name="r-12345678"
    )
    assert (inputs["name"], inputs["namespace"], inputs["timeout"], failures) == ("r-12345678", "default", 300, {})


@pytest.mark.parametrize(
    ("inputs", "where", "sentence"),
    [
        ({"chart": "oci://public.ecr.aws/karpenter/karpenter"}, "chart", "has no network; set topolab:charts"),
        ({"repositoryOpts": {"repo": "https://x"}}, "chart", "has no network; set topolab:charts"),
        ({"chart": "/nowhere"}, "chart", "Chart.yaml is missing"),
        ({"chart": None}, "chart", "names no chart"),
        ({"postrender": "sed"}, "postrender", "takes no postrender"),
    ],
)
def test_a_release_that_the_stand_in_cannot_make_is_refused(inputs, where, sentence):
    assert sentence in _release(**inputs)[1][where]


def test_a_chart_of_another_version_than_asked_for_is_refused(tmp_path):
    (tmp_path / "Chart.yaml").write_text("name: c\nversion: 1.2.3\n")
    assert "version 2.0.0 is asked for, 1.2.3 is there" in _release(chart=str(tmp_path), version="2.0.0")[1]["chart"]


@pytest.mark.parametrize(
    ("inputs", "live", "paths", "replaces"),
    [
        ({"values": {"a": 1}}, {"a": 1}, {}, set()),
        ({"values": {"a": 2}}, {"a": 1}, {"values.a": "update"}, set()),
        ({"values": {"a": 1}}, {"a": 5}, {"values.a": "update"}, set()),
        ({"values": {"a": 1}}, {"a": 1, "theirs": 2}, {}, set()),
        ({"values": {"a": 1}, "chart": "d"}, {"a": 1}, {"chart": "update"}, set()),
        ({"values": {"a": 1}, "name": "other"}, {"a": 1}, {"name": "update"}, {"name"}),
        ({"values": {}}, {"a": 1}, {"values.a": "delete"}, set()),
    ],
)
def test_only_name_and_namespace_replace_a_release(inputs, live, paths, replaces):
    old = {"name": "r", "chart": "c", "values": {"a": 1}}
    change = releases.changed(Found(identifier="", inputs=old, outputs={"values": live}), {**old, **inputs})
    assert (change.paths, change.replaces) == (paths, replaces)


def test_the_objects_of_a_release_are_named_by_kind():
    manifest = yaml.safe_dump_all(
        [
            {"kind": "ClusterRole", "apiVersion": "rbac/v1", "metadata": {"name": "b"}},
            {"kind": "ClusterRole", "apiVersion": "rbac/v1", "metadata": {"name": "a"}},
            {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "s", "namespace": "n"}},
        ]
    )
    assert resource_names(manifest) == {"ClusterRole/rbac/v1": ["a", "b"], "Service/v1": ["n/s"]}
