"""The drain guards' place in the graph and their contract with Pulumi; what they do is leftovers' matter."""

import base64
import pickletools
import sys
import traceback
from typing import Any

import pytest
from pulumi.runtime import rpc

from infra import teardown
from tests.pulumi_engine import ACCOUNT, read_stack, registered, run

GUARDS = ("NodesDrained", "InterfacesGone")
INPUTS = {"project": "topolab", "stack": "dev", "account": ACCOUNT, "region": "us-east-1", "limit_s": 1800}


@pytest.fixture(autouse=True)
def traceback_limit(monkeypatch):
    monkeypatch.setattr(sys, "tracebacklimit", 1000, raising=False)


@pytest.mark.parametrize("name", ["dev", "kept", "p4d24xl-2x8-efa4"])
def test_a_node_class_depends_on_the_guard_and_the_guard_on_the_release_and_what_instances_hold(name):
    graph = registered(name)
    guard = graph.one("NodesDrained")
    assert guard.urn in graph.one("EC2NodeClass").dependencies
    assert graph.one("Release", "karpenter").urn in guard.dependencies
    assert graph.one("InstanceProfile").urn in guard.dependencies


@pytest.mark.parametrize("name", ["dev", "kept", "p4d24xl-2x8-efa4"])
def test_the_cluster_depends_on_the_guard_and_the_guard_on_routes_and_their_subnets(name):
    graph = registered(name)
    guard = graph.one("InterfacesGone")
    assert guard.urn in graph.one("eks:index:Cluster").dependencies
    ways = [*graph.of("Route"), *graph.of("RouteTableAssociation"), *graph.of("VpcEndpoint")]
    assert len(ways) == 7
    assert {way.urn for way in ways} <= guard.dependencies


def test_a_guard_has_longer_than_its_own_limit_so_that_it_ends_with_a_sentence(dev):
    for kind in GUARDS:
        assert dev.one(kind).delete_timeout == "40m"
        assert dev.one(kind).inputs["limit_s"] < 40 * 60


def test_inputs_are_plain_and_name_stack_account_and_region_so_that_nothing_is_ambient(dev):
    shared = {**INPUTS, "limit_s": 1800}
    for kind, own in (("NodesDrained", "kubeconfig"), ("InterfacesGone", "vpc_id")):
        inputs = {key: value for key, value in dev.one(kind).inputs.items() if key != "__provider"}
        assert inputs.keys() == {*shared, own}
        assert {key: inputs[key] for key in shared} == shared
    assert dev.one("InterfacesGone").inputs["vpc_id"] == "vpc-0a1b2c"


def test_a_profile_of_aws_is_handed_on():
    stack = read_stack("dev")
    graph = run(type(stack)(stack="dev", config={**stack.config, "aws:profile": "lab"}))
    assert [graph.one(kind).inputs["profile"] for kind in GUARDS] == ["lab", "lab"]


def test_the_kubeconfig_is_a_secret_and_the_stored_provider_is_none(dev):
    raw = dev.one("NodesDrained").raw
    assert raw["kubeconfig"][rpc._special_sig_key] == rpc._special_secret_sig
    assert isinstance(raw["__provider"], str)


@pytest.mark.parametrize(
    ("kind", "provider"), [("NodesDrained", "DrainProvider"), ("InterfacesGone", "InterfaceProvider")]
)
def test_a_state_holds_a_class_by_name_so_names_are_an_interface(kind, provider, dev):
    stored = base64.b64decode(dev.one(kind).inputs["__provider"])
    words = {argument for _, argument, _ in pickletools.genops(stored) if isinstance(argument, str)}
    assert {"infra.teardown", provider} <= words
    assert len(stored) < 100, "code of ours went into the state"


@pytest.mark.parametrize("kind", GUARDS)
def test_the_type_that_a_state_knows_stays(kind, dev):
    assert dev.one(kind).type == f"pulumi-python:dynamic/topolab:{kind}"


def test_a_local_machine_has_no_guard(local_machine):
    assert [kind for kind in GUARDS if local_machine.of(kind)] == []


def test_nothing_is_made_at_create_and_the_state_keeps_the_inputs():
    made = teardown.DrainProvider().create({**INPUTS})
    assert (made.id, made.outs) == ("topolab/dev", INPUTS)


def test_a_new_kubeconfig_is_kept_in_place_and_a_new_place_gets_a_guard_of_its_own():
    guard = teardown.DrainProvider()
    old = {**INPUTS, "kubeconfig": "a"}
    assert guard.diff("x", old, {**old}).changes is False
    changed = guard.diff("x", old, {**old, "kubeconfig": "b"})
    assert (changed.changes, changed.replaces) == (True, [])
    assert guard.update("x", old, {**old, "kubeconfig": "b"}).outs == {**old, "kubeconfig": "b"}
    assert guard.diff("x", old, {**old, "region": "us-west-2"}).replaces == ["region"]
    assert teardown.InterfaceProvider().diff("x", {**INPUTS, "vpc_id": "a"}, {**INPUTS, "vpc_id": "b"}).replaces == [
        "vpc_id"
    ]


SUBNETS = {**INPUTS, "vpc_id": "vpc-1"}


@pytest.fixture
def calls(monkeypatch) -> list[Any]:
    """What a guard asks of leftovers, in order; the account is the right one and nothing is left."""
    made: list[Any] = []

    class Account:
        def __init__(self, **place):
            made.append(("connect", place))

        def must_be(self, account):
            made.append(("must be", account))

    def noted(name):
        return lambda *arguments, **named: made.append((name, *arguments[1:], *named.values()))

    monkeypatch.setattr(teardown, "Aws", Account)
    for name in ("await_no_claims", "end_nodes", "end_orphans", "free_interfaces"):
        monkeypatch.setattr(teardown, name, noted(name))
    monkeypatch.delenv(teardown.GIVES_UP_CLUSTER, raising=False)
    return made


def names(calls: list[Any]) -> list[str]:
    return [call[0] for call in calls]


def test_guard_a_checks_the_account_waits_for_karpenter_then_sweeps_behind_it(calls):
    teardown.DrainProvider().delete("x", {**INPUTS, "kubeconfig": "{}", "profile": "lab"})
    assert names(calls) == ["connect", "must be", "await_no_claims", "end_nodes"]
    assert calls[0][1] == {"region": "us-east-1", "profile": "lab"}
    assert calls[1][1] == ACCOUNT


def test_guard_b_checks_the_account_ends_orphans_then_frees_the_vpc(calls):
    teardown.InterfaceProvider().delete("x", SUBNETS)
    assert names(calls) == ["connect", "must be", "end_orphans", "free_interfaces"]
    assert calls[0][1] == {"region": "us-east-1", "profile": None}
    assert calls[3][2] == "vpc-1"


@pytest.mark.parametrize(("value", "gives_up"), [("true", True), ("false", False), ("1", False), (None, False)])
def test_a_cluster_is_given_up_by_the_word_that_the_kubernetes_provider_reads(value, gives_up, calls, monkeypatch):
    if value is not None:
        monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", value)
    teardown.DrainProvider().delete("x", {**INPUTS, "kubeconfig": "{}"})
    (waited,) = [call for call in calls if call[0] == "await_no_claims"]
    assert waited[-1] is gives_up


@pytest.mark.usefixtures("calls")
def test_the_limit_is_the_one_in_the_state(monkeypatch):
    seen = []
    monkeypatch.setattr(teardown, "end_nodes", lambda _aws, _owner, patience: seen.append(patience.limit_s))
    teardown.DrainProvider().delete("x", {**INPUTS, "kubeconfig": "{}", "limit_s": 12.0})
    assert seen == [12.0]


@pytest.mark.usefixtures("calls")
def test_an_expected_end_is_a_sentence_without_a_traceback(monkeypatch):
    def stop(*_):
        raise ValueError("instances are left")

    monkeypatch.setattr(teardown, "free_interfaces", stop)
    with pytest.raises(RuntimeError, match=r"^instances are left$") as stopped:
        teardown.InterfaceProvider().delete("x", SUBNETS)
    assert stopped.value.__suppress_context__
    text = "".join(traceback.format_exception(stopped.value))
    assert text == "RuntimeError: instances are left\n"


@pytest.mark.usefixtures("calls")
def test_a_fault_of_our_own_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(teardown, "free_interfaces", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        teardown.InterfaceProvider().delete("x", SUBNETS)
    assert sys.tracebacklimit == 1000


@pytest.mark.usefixtures("calls")
def test_what_a_guard_says_leaves_the_process_at_once(capfd, monkeypatch):
    monkeypatch.setattr(teardown, "free_interfaces", lambda _a, _o, _v, patience: patience.say("deleting eni-1"))
    teardown.InterfaceProvider().delete("x", SUBNETS)
    assert capfd.readouterr().out == "deleting eni-1\n"
