"""What the engine receives from a stand-in, over gRPC as the engine asks."""

# ruff: noqa: ARG002 - the toy takes what every stand-in is given

import os
import signal
import subprocess
import sys
from concurrent import futures
from pathlib import Path

import grpc
import pytest
from pulumi.runtime import rpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from tests.e2e.children import wait_until
from tests.e2e.providers.serving import (
    Change,
    Checked,
    Found,
    InitFailedError,
    RefusedError,
    Servicer,
    StandIn,
)
from tests.e2e.providers.values import UNKNOWN, Secret, differences, from_struct, is_unknown, opened, to_struct

URN = "urn:pulumi:dev::topolab::topolab:infra:Network$toy:index:Box::one"


class _Toy(StandIn):
    NAME = "toy"

    def configure(self, config):
        self.config = config

    def check(self, resource, old, new, random_seed):
        failures = {"size": f"{resource.type} has no size {new['size']}"} if new.get("size") == 13 else {}
        return Checked(inputs={"colour": "red", **new}, failures=failures)

    def diff(self, resource, old, new):
        paths = dict(differences(old.inputs, new))
        return Change(paths=paths, replaces=frozenset(paths) & {"size"}, delete_before_replace=True)

    def create(self, resource, inputs, *, timeout_s):
        if inputs["size"] == 1:
            raise RefusedError("too small")
        if inputs["size"] == 2:
            raise InitFailedError("box-2", inputs, "never became ready")
        return f"box-{inputs['size']}", {**inputs, "weight": Secret(inputs["size"] * timeout_s)}

    def previewed(self, resource, inputs, old):
        return {**inputs, "weight": UNKNOWN if old is None else old.outputs["weight"]}

    def read(self, resource, identifier, inputs, outputs):
        return None if identifier == "box-0" else Found(identifier=identifier, inputs=inputs, outputs=outputs)

    def update(self, resource, old, inputs, *, timeout_s):
        return {**old.outputs, **inputs}

    def delete(self, resource, old, *, timeout_s):
        raise KeyError(resource.name)

    def invoke(self, token, arguments):
        return {"asked": token, **arguments}


@pytest.fixture(name="toy", scope="module")
def _toy():
    server = grpc.server(futures.ThreadPoolExecutor(4))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Servicer(_Toy("1.2.3")), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield provider_pb2_grpc.ResourceProviderStub(channel)
    server.stop(None)


def _create(toy, *, preview=False, **inputs):
    return toy.Create(
        provider_pb2.CreateRequest(
            urn=URN, type="toy:index:Box", name="one", properties=to_struct(inputs), timeout=3, preview=preview
        )
    )


def test_a_made_object_comes_back_with_its_secret_marked(toy):
    made = _create(toy, size=4, tags={"a": "b"})
    assert made.id == "box-4"
    assert from_struct(made.properties) == {"size": 4, "tags": {"a": "b"}, "weight": Secret(12)}


def test_a_preview_makes_nothing_and_leaves_the_unknown_unknown(toy):
    seen = _create(toy, size=1, preview=True)
    assert seen.id == ""
    assert seen.properties["weight"] == rpc.UNKNOWN


def test_a_refusal_is_the_sentence_and_nothing_else(toy):
    with pytest.raises(grpc.RpcError) as error:
        _create(toy, size=1)
    assert error.value.details() == "too small"


def test_an_object_that_is_there_but_not_ready_goes_into_the_state(toy):
    with pytest.raises(grpc.RpcError) as error:
        _create(toy, size=2, tags={})
    packed = dict(error.value.trailing_metadata())["grpc-status-details-bin"]
    detail = provider_pb2.ErrorResourceInitFailed()
    assert status_pb2.Status.FromString(packed).details[0].Unpack(detail)
    assert (detail.id, list(detail.reasons)) == ("box-2", ["never became ready"])
    assert from_struct(detail.properties) == {"size": 2, "tags": {}}


def test_a_defect_of_ours_is_named_as_one_and_shows_no_stack(toy):
    request = provider_pb2.DeleteRequest(urn=URN, type="toy:index:Box", name="one", id="box-4")
    with pytest.raises(grpc.RpcError) as error:
        toy.Delete(request)
    assert error.value.details() == (
        "the stand-in toy has a defect: KeyError: 'one'; its stack stands in the provider's log"
    )


def test_a_check_fills_defaults_in_and_names_the_wrong_property(toy):
    good = toy.Check(provider_pb2.CheckRequest(urn=URN, type="toy:index:Box", name="one", news=to_struct({"size": 4})))
    assert from_struct(good.inputs) == {"colour": "red", "size": 4}
    bad = toy.Check(provider_pb2.CheckRequest(urn=URN, type="toy:index:Box", name="one", news=to_struct({"size": 13})))
    assert [(one.property, one.reason) for one in bad.failures] == [("size", "toy:index:Box has no size 13")]


def test_a_difference_says_what_is_replaced(toy):
    request = provider_pb2.DiffRequest(
        urn=URN,
        type="toy:index:Box",
        name="one",
        id="box-4",
        old_inputs=to_struct({"size": 4, "tags": {"kept": "1", "old": "x"}}),
        news=to_struct({"size": 5, "tags": {"kept": "1", "a.dotted": "y"}}),
    )
    answer = toy.Diff(request)
    assert answer.changes == provider_pb2.DiffResponse.DIFF_SOME
    assert (list(answer.diffs), list(answer.replaces), answer.deleteBeforeReplace) == (["size", "tags"], ["size"], True)
    kinds = provider_pb2.PropertyDiff
    assert {path: one.kind for path, one in answer.detailedDiff.items()} == {
        "size": kinds.UPDATE_REPLACE,
        "tags.old": kinds.DELETE,
        'tags["a.dotted"]': kinds.ADD,
    }
    request.news.CopyFrom(request.old_inputs)
    assert toy.Diff(request).changes == provider_pb2.DiffResponse.DIFF_NONE


def test_what_is_gone_reads_as_nothing(toy):
    gone = toy.Read(provider_pb2.ReadRequest(urn=URN, type="toy:index:Box", name="one", id="box-0"))
    assert gone.id == ""
    there = toy.Read(
        provider_pb2.ReadRequest(
            urn=URN, type="toy:index:Box", name="one", id="box-4", properties=to_struct({"weight": 12})
        )
    )
    assert (there.id, from_struct(there.properties)) == ("box-4", {"weight": 12})


def test_a_question_is_answered(toy):
    answer = toy.Invoke(provider_pb2.InvokeRequest(tok="toy:index:ask", args=to_struct({"n": 0.5})))
    assert from_struct(getattr(answer, "return")) == {"asked": "toy:index:ask", "n": 0.5}


def test_values_survive_the_protocol():
    values = {"n": None, "b": True, "i": 3, "f": 0.25, "s": "x", "l": [1, [Secret({"k": "v"})]], "u": UNKNOWN}
    assert from_struct(to_struct(values)) == values
    assert opened(values)["l"] == [1, [{"k": "v"}]]


def test_the_unknown_is_the_sdks_and_found_wherever_it_is():
    assert UNKNOWN == rpc.UNKNOWN
    assert is_unknown({"a": [{"b": Secret(f"arn:{UNKNOWN}")}]})
    assert not is_unknown({"a": ["b", 1, None]})


def test_lists_differ_by_their_elements():
    assert dict(differences({"l": [1, 2, 3]}, {"l": [1, 5]})) == {"l[1]": "update", "l[2]": "delete"}
    assert dict(differences({"a": None}, {})) == {}


_ENGINE = """
import subprocess, sys, time
plugin = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
print(plugin.pid, plugin.stdout.readline().decode(), flush=True)
time.sleep(600)
"""


@pytest.fixture(name="started")
def _started(tmp_path):
    """The number of a plugin that serves, and the process that started it."""
    (tmp_path / "site.json").write_text(
        f'{{"folder": "{tmp_path}", "tools": "t", "kubeconfig": "k", "charts": "c", "aws_endpoint": "http://127.0.0.1:1"}}'
    )
    plugin = [sys.executable, "-m", "tests.e2e.providers.aws", "127.0.0.1:1"]
    environment = {
        "PATH": os.defpath,
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "TOPOLAB_E2E_SITE": str(tmp_path / "site.json"),
    }
    command = [sys.executable, "-c", _ENGINE, *plugin]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as engine:
        assert engine.stdout is not None
        number, port = (int(word) for word in engine.stdout.readline().split())
        assert port > 0
        yield number, engine
        engine.kill()


def is_serving(number):
    stat = Path(f"/proc/{number}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.e2e
def test_a_plugin_ends_with_an_engine_that_was_killed(started):
    number, engine = started
    assert is_serving(number)
    engine.kill()
    wait_until(lambda: not is_serving(number), 5.0, "the plugin has followed its engine")


@pytest.mark.e2e
def test_a_plugin_ends_at_the_signal_by_which_the_engine_stops_it(started):
    number, _ = started
    os.kill(number, signal.SIGINT)
    wait_until(lambda: not is_serving(number), 5.0, "the plugin has ended")
