from pathlib import Path
from typing import Any

import pytest

from tests.workloads.lab.scene import pod, surroundings
from workloads.lab.documents import References
from workloads.lab.pod_environment import environment, expand

REFERENCES = References({"map": {"key": b"from the map"}}, {"token": {"token": b"hf_x"}}, {})


def _environment(*entries: dict[str, Any], given: dict[str, str] | None = None) -> dict[str, str]:
    subject = pod("p-0", container={"env": list(entries)})
    subject["metadata"]["annotations"] = {"batch.kubernetes.io/job-completion-index": "3"}
    subject["metadata"]["labels"] = {"app": "trainer"}
    around = surroundings(Path("/state"), references=REFERENCES, environment=given or {}, node="host")
    return environment(subject, subject["spec"]["containers"][0], around, "/venv/bin")


def _field(path: str) -> dict[str, Any]:
    return {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [("$(A)/x", "1/x"), ("$(B)", "$(B)"), ("$$(A)", "$(A)"), ("$A ${A} $", "$A ${A} $"), ("$(A)$(A)", "11")],
)
def test_references_expand_by_the_rule_of_kubernetes(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1"}) == expanded


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p-0"),
        ("metadata.namespace", "topolab"),
        ("metadata.annotations['batch.kubernetes.io/job-completion-index']", "3"),
        ("metadata.labels['app']", "trainer"),
        ("metadata.labels['absent']", ""),
        ("spec.nodeName", "host"),
        ("status.podIP", "10.90.0.1"),
    ],
)
def test_a_field_reference_gives_what_the_kubelet_would(path: str, value: str) -> None:
    assert _environment(_field(path))["X"] == value


def test_later_variables_see_earlier_ones_and_keys_of_maps_and_secrets() -> None:
    found = _environment(
        {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "map", "key": "key"}}},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "token"}}},
        {"name": "BOTH", "value": "$(MAP), $(TOKEN), $(LATER), $(GIVEN)"},
        {"name": "LATER", "value": "x"},
        given={"GIVEN": "by the node"},
    )
    assert found["BOTH"] == "from the map, hf_x, $(LATER), by the node"


def test_an_optional_key_that_is_missing_sets_nothing() -> None:
    reference = {"name": "absent", "key": "key", "optional": True}
    assert "X" not in _environment({"name": "X", "valueFrom": {"secretKeyRef": reference}})


def test_the_interpreters_folder_comes_first_even_before_the_pods_own_path() -> None:
    assert _environment()["PATH"].startswith("/venv/bin:/usr/local/sbin:")
    assert _environment({"name": "PATH", "value": "/own:$(PATH)"})["PATH"].startswith("/venv/bin:/own:/usr/local")


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (_field("metadata.generation"), "X: fieldPath metadata.generation isn't known to the sandbox"),
        (
            {"name": "X", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            "pod p-0: env of node: X: valueFrom.resourceFieldRef isn't known to the sandbox",
        ),
        (
            {"name": "X", "valueFrom": {"secretKeyRef": {"name": "token", "key": "no"}}},
            "X: secret token with key no isn't among the documents",
        ),
        (
            {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "no", "key": "key"}}},
            "X: config map no with key key isn't among the documents",
        ),
        ({"name": "X", "value": "1", "fieldRef": "2"}, "X.fieldRef: the sandbox doesn't know this field"),
    ],
)
def test_a_source_that_cannot_be_resolved_is_named(entry: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        _environment(entry)


def test_a_variable_that_pod_and_node_set_differently_is_an_error_and_equally_is_none() -> None:
    own = {"name": "NCCL_HOSTID", "value": "other"}
    with pytest.raises(ValueError, match="NCCL_HOSTID is 'other' in the pod and 'p-0' by the sandbox"):
        _environment(own, given={"NCCL_HOSTID": "p-0"})
    assert _environment(own, given={"NCCL_HOSTID": "other"})["NCCL_HOSTID"] == "other"
