"""The cluster is asked over HTTP, and waited for while its controller lives."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.e2e.children import free_port
from tests.workloads.operations.leftovers.scene import OWNER
from workloads.operations.leftovers.node_claims import NoAnswerError, node_claims
from workloads.operations.leftovers.sweep import LeftoverError, await_no_claims

CLAIM = {
    "metadata": {"name": "gpu-g6e8xl-x2x9p", "labels": {"karpenter.sh/nodepool": "gpu-g6e8xl"}},
    "status": {"providerID": "aws:///us-east-1b/i-0a1b2c"},
}


def kubeconfig(port: int, **user: object) -> str:
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "aws",
        "clusters": [{"name": "kubernetes", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "contexts": [{"name": "aws", "context": {"cluster": "kubernetes", "user": "aws"}}],
        "users": [{"name": "aws", "user": user}],
    })  # fmt: skip


@pytest.fixture
def server():
    """An API server that answers NodeClaims as told; its kubeconfig, and the paths and tokens that it saw."""
    started = []

    def start(status: int, body: object) -> tuple[str, list[tuple[str, str | None]]]:
        seen: list[tuple[str, str | None]] = []

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append((self.path, self.headers.get("Authorization")))
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_):
                pass

        listening = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        started.append(listening)
        return kubeconfig(listening.server_port, **EXEC), seen

    yield start
    for listening in started:
        listening.shutdown()
        listening.server_close()


TOKEN = {"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential", "status": {"token": "abc"}}
EXEC = {
    "exec": {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "echo",
        "args": [json.dumps(TOKEN)],
        "interactiveMode": "Never",
    }
}
"""In the place of `aws eks get-token`."""


def test_claims_are_told_with_pool_and_instance(server):
    config, seen = server(200, {"items": [CLAIM, {"metadata": {"name": "another"}}]})
    assert node_claims(config) == ["another (pool no pool)", "gpu-g6e8xl-x2x9p (pool gpu-g6e8xl, i-0a1b2c)"]
    assert seen == [("/apis/karpenter.sh/v1/nodeclaims", "Bearer abc")]


def test_a_cluster_without_the_kind_has_no_claim(server):
    assert node_claims(server(404, {})[0]) == []


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_an_answer_that_is_none_says_why(status, server):
    with pytest.raises(NoAnswerError, match=str(status)):
        node_claims(server(status, {})[0])


def test_a_server_that_is_not_there_is_no_answer():
    with pytest.raises(NoAnswerError, match=r"Connection refused|Failed to establish"):
        node_claims(kubeconfig(free_port(), token="x"))


def test_a_kubeconfig_that_is_none_is_no_answer():
    with pytest.raises(NoAnswerError, match="Invalid kube-config"):
        node_claims("{}")


def answers(*values: list[str] | NoAnswerError) -> Callable[[], list[str]]:
    """One a look; the last for ever."""
    left = list(values)

    def ask() -> list[str]:
        value = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(value, NoAnswerError):
            raise value
        return value

    return ask


SILENCE = NoAnswerError("Connection refused")


def test_no_claim_is_no_wait(clock):
    await_no_claims(answers([]), OWNER, clock.patience(), give_up_cluster=False)
    assert (clock.seconds, clock.lines) == (0, [])


def test_claims_are_waited_for_while_the_controller_drains_them(clock):
    await_no_claims(answers(["a", "b"], ["b"], []), OWNER, clock.patience(), give_up_cluster=False)
    assert clock.lines == [
        "waiting for NodeClaims to go: a, b (0 of 600 s)",
        "waiting for NodeClaims to go: b (5 of 600 s)",
    ]


def test_claims_that_stay_stop_the_destroy_with_their_names_and_what_to_do(clock):
    with pytest.raises(LeftoverError) as stopped:
        await_no_claims(answers(["a (pool mine)"]), OWNER, clock.patience(60), give_up_cluster=True)
    assert str(stopped.value) == (
        "NodeClaims are left in cluster topolab-dev after 60 s: a (pool mine); `kubectl describe nodeclaim` says what "
        "holds them, a NodePool of your own is yours to delete; then `pulumi destroy` again"
    )


def test_a_server_that_blinks_is_asked_again(clock):
    asked = answers(SILENCE, SILENCE, ["a"], SILENCE, SILENCE, SILENCE, SILENCE, [])
    await_no_claims(asked, OWNER, clock.patience(), give_up_cluster=False)
    assert clock.seconds == 35


def test_a_silent_cluster_stops_the_destroy_and_the_sentence_names_the_way_out(clock):
    with pytest.raises(LeftoverError) as stopped:
        await_no_claims(answers(SILENCE), OWNER, clock.patience(), give_up_cluster=False)
    assert "cluster topolab-dev doesn't answer (Connection refused)" in str(stopped.value)
    assert "`PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy --refresh --stack dev`" in str(stopped.value)
    assert clock.seconds == 30


def test_a_silent_cluster_that_is_given_up_is_passed_over_and_that_is_said(clock):
    await_no_claims(answers(SILENCE), OWNER, clock.patience(), give_up_cluster=True)
    assert clock.lines[-1] == (
        "cluster topolab-dev doesn't answer (Connection refused): its nodes are ended by tag alone"
    )
