"""What every Pod gets is taken off again, and nothing else is."""

import copy

import pytest

from tests.e2e.kubelet.defaults import without_defaults


def written():
    """A Pod as its author wrote it, with one of each thing that gets a default."""
    field = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    container = {
        "name": "node",
        "image": "local/python",
        "command": ["python"],
        "env": [{"name": "A", "value": "1"}, {"name": "NODE", "valueFrom": field}],
        "ports": [{"containerPort": 29500}],
        "volumeMounts": [{"name": "config", "mountPath": "/config"}],
    }
    return {
        "metadata": {"name": "p", "namespace": "topolab"},
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": "trainer",
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "initContainers": [{"name": "check", "image": "python:3.12", "command": ["true"]}],
            "containers": [container],
            "volumes": [
                {"name": "config", "configMap": {"name": "c"}},
                {"name": "token", "secret": {"secretName": "s"}},
                {"name": "data", "hostPath": {"path": "/data"}},
            ],
        },
    }


def served(pod):
    """The same as the API server gives it back."""
    pod = copy.deepcopy(pod)
    spec = pod["spec"]
    token = {
        "name": "kube-api-access-x7x2p",
        "projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {}}]},
    }
    mount = {"name": token["name"], "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    for container in (*spec["initContainers"], *spec["containers"]):
        latest = container["image"] == "local/python"
        container |= {
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "Always" if latest else "IfNotPresent",
            "resources": {},
            "volumeMounts": [*container.get("volumeMounts", []), mount],
        }
    spec["containers"][0]["env"][1]["valueFrom"]["fieldRef"]["apiVersion"] = "v1"
    spec["containers"][0]["ports"][0]["protocol"] = "TCP"
    spec["volumes"][0]["configMap"]["defaultMode"] = 420
    spec["volumes"][1]["secret"]["defaultMode"] = 420
    spec["volumes"][2]["hostPath"]["type"] = ""
    spec["volumes"].append(token)
    spec["tolerations"] += [
        {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for state in ("not-ready", "unreachable")
    ]
    return pod | {
        "spec": spec
        | {
            "dnsPolicy": "ClusterFirst",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "enableServiceLinks": True,
            "terminationGracePeriodSeconds": 30,
            "serviceAccount": "trainer",
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
        }
    }


def test_a_served_pod_is_what_was_written():
    assert without_defaults(served(written())) == written()


def test_a_written_pod_has_nothing_to_lose_and_stays_as_it_is():
    pod = served(written())
    before = copy.deepcopy(pod)
    assert without_defaults(written()) == written()
    without_defaults(pod)
    assert pod == before


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dnsPolicy", "ClusterFirstWithHostNet"),
        ("schedulerName", "other"),
        ("securityContext", {"runAsUser": 7}),
        ("enableServiceLinks", False),
        ("terminationGracePeriodSeconds", 120),
        ("priority", 10),
        ("hostNetwork", True),
        ("hostPID", True),
        ("runtimeClassName", "gvisor"),
    ],
)
def test_what_is_no_default_stays(field, value):
    assert (
        without_defaults({**served(written()), "spec": {**served(written())["spec"], field: value}})["spec"][field]
        == value
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [("terminationMessagePolicy", "FallbackToLogsOnError"), ("imagePullPolicy", "IfNotPresent"), ("tty", True)],
)
def test_what_a_container_asks_for_stays(field, value):
    pod = served(written())
    pod["spec"]["containers"][0][field] = value
    assert without_defaults(pod)["spec"]["containers"][0][field] == value


def test_a_pod_of_the_hosts_network_has_its_ports_there():
    pod = served(written())
    pod["spec"]["hostNetwork"] = True
    pod["spec"]["containers"][0]["ports"][0]["hostPort"] = 29500
    assert without_defaults(pod)["spec"]["containers"][0]["ports"] == [{"containerPort": 29500}]
    pod["spec"]["hostNetwork"] = False
    assert without_defaults(pod)["spec"]["containers"][0]["ports"] == [{"containerPort": 29500, "hostPort": 29500}]


def test_a_projected_volume_of_the_authors_own_stays():
    pod = served(written())
    pod["spec"]["volumes"].append({"name": "mine", "projected": {"sources": []}})
    assert without_defaults(pod)["spec"]["volumes"][-1]["name"] == "mine"
