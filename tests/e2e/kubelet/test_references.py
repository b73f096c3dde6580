"""What a pod names is found wherever it names it."""

from tests.e2e.kubelet.references import Name, names


def test_volumes_and_variables_are_looked_through_in_all_containers():
    secret = {"name": "T", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token"}}}
    maybe = {"name": "M", "valueFrom": {"configMapKeyRef": {"name": "extra", "key": "k", "optional": True}}}
    node = {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    pod = {
        "spec": {
            "initContainers": [{"name": "i", "env": [maybe, node]}],
            "containers": [{"name": "c", "env": [secret, {"name": "A", "value": "1"}]}],
            "volumes": [
                {"name": "config", "configMap": {"name": "config"}},
                {"name": "again", "configMap": {"name": "config"}},
                {"name": "s", "secret": {"secretName": "files", "optional": True}},
                {"name": "records", "persistentVolumeClaim": {"claimName": "records"}},
                {"name": "shm", "emptyDir": {"medium": "Memory"}},
            ],
        }
    }
    assert names(pod) == [
        Name("configmaps", "config"),
        Name("secrets", "files", optional=True),
        Name("persistentvolumeclaims", "records"),
        Name("configmaps", "extra", optional=True),
        Name("secrets", "hf-token"),
    ]


def test_a_pod_that_names_nothing_needs_nothing():
    assert names({"spec": {"containers": [{"name": "c"}]}}) == []
