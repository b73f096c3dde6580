from pathlib import Path
from typing import Any

import pytest

from tests.workloads.lab.scene import pod, surroundings
from workloads.lab.documents import References
from workloads.lab.pod_program import PodProgram, Volume, VolumeFile, VolumeMount
from workloads.lab.pod_reader import read_pod

FILES = {"config.json": b"{}", "other": b"x"}


def _read(subject: dict[str, Any], **changes: Any) -> PodProgram:
    references = References({"map": FILES}, {"secret": FILES}, {"claim": Path("/tmp"), "lost": Path("/no/such")})
    return read_pod(subject, surroundings(Path("/state"), references=references, **changes), "/bin", ())


def _volume(**source: Any) -> Volume:
    return _read(pod("p-0", volumes=[{"name": "v", **source}])).volumes[0]


def _mounted(mount: dict[str, Any], **source: Any) -> tuple[VolumeMount, ...]:
    subject = pod("p-0", volumes=[{"name": "v", **source}], container={"volumeMounts": [{"name": "v", **mount}]})
    return _read(subject).mounts


def test_a_pod_becomes_a_program_with_kubernetes_own_defaults() -> None:
    program = _read(pod("p-0", "print()", "--flag", "$(HOSTNAME)"))
    assert program.main.command == ("python", "-u", "-c", "print()", "--flag", "p-0")
    assert (program.main.folder, program.grace_s, program.deadline_s) == ("/", 30, None)
    assert (program.hostname, program.namespace) == ("p-0", 0)


def test_deadline_grace_folder_and_init_containers_are_kept() -> None:
    subject = pod(
        "p-0",
        activeDeadlineSeconds=60,
        terminationGracePeriodSeconds=0,
        initContainers=[{"name": "first", "command": ["true"]}],
        container={"workingDir": "/work"},
    )
    program = _read(subject)
    assert (program.deadline_s, program.grace_s, program.main.folder) == (60, 0, "/work")
    assert [container.command for container in program.init] == [("true",)]


@pytest.mark.parametrize(
    ("source", "volume"),
    [
        ({"emptyDir": {}}, Volume("v", "scratch")),
        ({"emptyDir": {"medium": "Memory", "sizeLimit": "1.5Gi"}}, Volume("v", "memory", size_bytes=3 * 2**29)),
        ({"configMap": {"name": "absent", "optional": True}}, Volume("v", "files")),
        ({"persistentVolumeClaim": {"claimName": "claim"}}, Volume("v", "folder", folder="/tmp")),
        ({"hostPath": {"path": "/tmp", "type": "Directory"}}, Volume("v", "folder", folder="/tmp")),
        (
            {"secret": {"secretName": "secret", "items": [{"key": "other", "path": "a/b"}], "defaultMode": 0o400}},
            Volume("v", "files", files=(VolumeFile("a/b", b"x", 0o400),)),
        ),
        (
            {"configMap": {"name": "map"}},
            Volume("v", "files", files=(VolumeFile("config.json", b"{}", 0o644), VolumeFile("other", b"x", 0o644))),
        ),
    ],
)
def test_volumes_of_every_known_kind(source: dict[str, Any], volume: Volume) -> None:
    assert _volume(**source) == volume


def test_config_maps_and_read_only_claims_are_mounted_read_only() -> None:
    at = {"mountPath": "/x"}
    assert _mounted(at, configMap={"name": "map"}) == (VolumeMount("/x", "v", True),)
    assert _mounted(at, persistentVolumeClaim={"claimName": "claim"}) == (VolumeMount("/x", "v", False),)
    assert _mounted({**at, "readOnly": True}, emptyDir={}) == (VolumeMount("/x", "v", True),)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ({"nfs": {}}, "volume v: nfs isn't a volume that the sandbox knows"),
        ({"projected": {"sources": []}}, "volume v: projected isn't a volume that the sandbox knows"),
        ({}, "volume v: names no source"),
        ({"configMap": {"name": "absent"}}, "volume v: configMap absent isn't among the documents"),
        (
            {"configMap": {"name": "map", "items": [{"key": "no", "path": "x"}]}},
            "has no key no; it has config.json, other",
        ),
        ({"configMap": {"name": "map", "items": [{"key": "other", "path": "../x"}]}}, "../x leaves the volume"),
        ({"persistentVolumeClaim": {"claimName": "no"}}, "claim no isn't among the documents"),
        ({"persistentVolumeClaim": {"claimName": "lost"}}, "/no/such isn't a folder of this machine"),
        ({"hostPath": {"path": "/dev/null", "type": "CharDevice"}}, "hostPath.type: CharDevice"),
        ({"emptyDir": {"medium": "HugePages"}}, "emptyDir.medium: HugePages"),
        ({"emptyDir": {"sizeLimit": "much"}}, "emptyDir.sizeLimit: much isn't a quantity such as 8Gi"),
    ],
)
def test_a_volume_that_cannot_be_made_is_named(source: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        _volume(**source)


@pytest.mark.parametrize(
    ("mount", "sentence"),
    [
        ({"mountPath": "/x", "subPath": "y"}, "volumeMounts of node.subPath: the sandbox doesn't know this field"),
        ({"mountPath": "relative"}, "mountPath relative isn't an absolute path"),
        ({"mountPath": "/a/../../b"}, "isn't an absolute path"),
        ({"mountPath": "/x", "name": "other"}, "other isn't among the pod's volumes"),
    ],
)
def test_a_mount_that_cannot_be_made_is_named(mount: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        _mounted(mount, emptyDir={})


def test_two_containers_cannot_mount_different_volumes_at_one_path() -> None:
    first = {"name": "first", "command": ["true"], "volumeMounts": [{"name": "a", "mountPath": "/x"}]}
    subject = pod(
        "p-0",
        volumes=[{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}],
        initContainers=[first],
        container={"volumeMounts": [{"name": "b", "mountPath": "/x"}]},
    )
    with pytest.raises(ValueError, match="/x is mounted otherwise by another container"):
        _read(subject)


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"hostNetwork": True}, "hostNetwork"),
        ({"hostIPC": True}, "hostIPC"),
        ({"restartPolicy": "OnFailure"}, "restartPolicy: OnFailure"),
        ({"runtimeClassName": "gvisor"}, "runtimeClassName"),
        ({"securityContext": {"runAsUser": 1000}}, "securityContext.runAsUser"),
        ({"containers": [{"name": "a", "command": ["a"]}, {"name": "b", "command": ["b"]}]}, "containers: a, b"),
        ({"initContainers": [{"name": "i"}]}, r"initContainers\[i\].command: missing"),
        ({"container": {"envFrom": [{"configMapRef": {"name": "map"}}]}}, r"containers\[node\].envFrom"),
        ({"container": {"command": []}}, r"containers\[node\].command: missing"),
        ({"container": {"livenessProbe": {"exec": {}}}}, r"containers\[node\].livenessProbe"),
        ({"container": {"securityContext": {"privileged": True}}}, "securityContext.privileged"),
        ({"container": {"resources": {"limits": {"vpc.amazonaws.com/efa": 1}}}}, "limits.vpc.amazonaws.com/efa"),
    ],
)
def test_a_field_that_the_sandbox_cannot_honour_is_named(patch: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match=f"pod p-0: spec.*{field}"):
        _read(pod("p-0", **patch))


def test_what_an_api_server_adds_to_every_pod_is_no_obstacle() -> None:
    added = {
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "nodeName": "node",
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        "container": {
            "image": "x",
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
        },
    }
    assert _read(pod("p-0", **added)).name == "p-0"


def test_a_pod_gets_as_many_gpus_as_it_asks_for_or_none_of_it_runs() -> None:
    subject = pod("p-0", container={"resources": {"limits": {"nvidia.com/gpu": 2}}})
    assert _read(subject, gpus=(4, 5)).gpus == (4, 5)
    with pytest.raises(ValueError, match="pod p-0: asks for 2 GPUs and gets 1"):
        _read(subject, gpus=(4,))
