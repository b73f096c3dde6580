"""A container as a process: its files, variables and command line, and what makes it wait."""

import base64
from pathlib import Path

import pytest
import yaml

from tests.e2e.cluster.api import Api, ApiError, Document
from tests.e2e.cluster.controllers import controller_of
from tests.e2e.cluster.pod_program import NotStartable, Place, merged, prepare
from tests.e2e.cluster.quantities import in_units_of

PORTS = {8081: 21001, 8443: 21002, 9443: 21003, 10443: 21004}
CONFIGURATION = (
    "kind: Configuration\nleaderElection: {leaderElect: true, leaseDuration: 15s}\nclientConnection: {qps: 50}\n"
)


class Objects(Api):
    """An API server that has these objects and no others."""

    def __init__(self, objects: dict[str, Document]) -> None:
        self.objects = objects

    def get(self, path: str, **query: str) -> Document:
        assert query == {}
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"{path} not found")
        return self.objects[path]


API = Objects(
    {
        "/api/v1/namespaces/ns/configmaps/config": {"data": {"controller.yaml": CONFIGURATION, "note": "as it is"}},
        "/api/v1/namespaces/ns/secrets/secret": {"data": {"word": base64.b64encode(b"hush").decode()}},
    }
)
MOUNTS = [
    {"name": "config", "mountPath": "/controller.yaml", "subPath": "controller.yaml"},
    {"name": "config", "mountPath": "/notes"},
    {"name": "certs", "mountPath": "/tmp/k8s-webhook-server/serving-certs"},
]
VOLUMES = [
    {"name": "config", "configMap": {"name": "config"}},
    {"name": "certs", "secret": {"secretName": "not-there-yet"}},
    {"name": "odd", "nfs": {"server": "x"}},
]


def write_certificates(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "tls.crt").write_text("ours")


def program(tmp_path, *, image="ghcr.io/kubeflow/trainer/trainer-controller-manager:v2", **container):
    pod = {
        "metadata": {"name": "pod", "namespace": "ns", "uid": "u-1"},
        "spec": {
            "nodeName": "system-0",
            "containers": [{"name": "main", "volumeMounts": MOUNTS, **container}],
            "volumes": VOLUMES,
        },
    }
    place = Place(
        folder=tmp_path,
        tools=tmp_path / "tools",
        ports=PORTS,
        address="10.244.0.1",
        write_certificates=write_certificates,
        surroundings={"KUBECONFIG": "here"},
    )
    controller = controller_of(image)
    assert controller is not None
    return prepare(pod, controller, place, API)


def test_the_configuration_is_the_charts_but_for_ports_election_and_certificates(tmp_path):
    made = program(tmp_path, args=["--config=/controller.yaml", "--zap-log-level=2"])
    path = tmp_path / "mounts" / "controller.yaml"
    assert made.command == (str(tmp_path / "tools/trainer-controller-manager"), f"--config={path}", "--zap-log-level=2")
    written = yaml.safe_load(path.read_text())
    assert written["webhook"] == {"host": "127.0.0.1", "port": 21003}
    assert written["leaderElection"] == {"leaderElect": False, "leaseDuration": "15s"}
    assert written["certManagement"] == {"enable": False}
    assert written["clientConnection"] == {"qps": 50}


def test_other_files_stay_as_they_are(tmp_path):
    program(tmp_path)
    assert (tmp_path / "mounts/notes/note").read_text() == "as it is"


def test_serving_certificates_stand_where_the_controller_looks_first(tmp_path):
    made = program(tmp_path)
    assert (tmp_path / "mounts/tmp/k8s-webhook-server/serving-certs/tls.crt").read_text() == "ours"
    assert made.environment["TMPDIR"] == str(tmp_path / "mounts/tmp")


def test_variables_come_from_fields_limits_maps_and_each_other(tmp_path):
    env = [
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
        {"name": "NOTE", "valueFrom": {"configMapKeyRef": {"name": "config", "key": "note"}}},
        {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "secret", "key": "word"}}},
        {"name": "BOTH", "value": "$(NAME) in $(KUBECONFIG), $(UNKNOWN)"},
        {"name": "ABSENT", "valueFrom": {"secretKeyRef": {"name": "secret", "key": "no", "optional": True}}},
    ]
    given = program(tmp_path, env=env, resources={"limits": {"memory": "1Gi"}}).environment
    wanted = {"NAME": "pod", "LIMIT": "1024", "NOTE": "as it is", "WORD": "hush", "BOTH": "pod in here, $(UNKNOWN)"}
    assert wanted.items() <= given.items()
    assert "ABSENT" not in given


@pytest.mark.parametrize(
    ("container", "sentence"),
    [
        ({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "none", "key": "k"}}}]}, "none not found"),
        (
            {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "config", "key": "k"}}}]},
            "env A: configmaps config has no key k",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeSelector"}}}]},
            "env A: fieldPath spec.nodeSelector isn't known to system nodes",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]},
            "env A: the container has no limits.cpu; state it",
        ),
        ({"env": [{"name": "A", "valueFrom": {"fileKeyRef": {}}}]}, "env A: fileKeyRef isn't known to system nodes"),
        ({"volumeMounts": [{"name": "odd", "mountPath": "/x"}]}, "volume odd: nfs isn't known to system nodes"),
    ],
)
def test_a_container_waits_with_a_sentence_for_what_isnt_there(tmp_path, container, sentence):
    with pytest.raises(NotStartable, match=sentence) as waits:
        program(tmp_path, **container)
    assert waits.value.reason == "CreateContainerConfigError"


@pytest.mark.parametrize(
    ("image", "binary"),
    [
        ("ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.3.0", "trainer-controller-manager"),
        ("registry.k8s.io/jobset/jobset:v0.12.0", "jobset"),
        ("public.ecr.aws/karpenter/controller:1.14.1@sha256:0", "karpenter"),
        ("localhost:5000/jobset", "jobset"),
        ("example.com/controller:1", None),
        ("python:3.11", None),
    ],
)
def test_an_image_is_known_by_its_name(image, binary):
    found = controller_of(image)
    assert (found and found.binary) == binary


def test_mappings_are_merged_key_by_key():
    assert merged({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": 3}, "d": [2]}) == {"a": {"b": 3, "c": 2}, "d": [2]}


@pytest.mark.parametrize(
    ("quantity", "divisor", "count"),
    [("1Gi", "0", 2**30), ("1Gi", "1Mi", 1024), ("1500m", "1", 2), ("1500m", "1m", 1500)],
)
def test_a_share_is_counted_in_units_of_the_divisor(quantity, divisor, count):
    assert in_units_of(quantity, divisor) == count
