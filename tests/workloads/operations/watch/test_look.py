"""A run is read, and suspended, over plain HTTP."""

import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from tests.workloads.operations.watch.scene import JOB, pod, train_job
from workloads.operations.pending.observe import connect
from workloads.operations.watch.look import look, suspend

NAMESPACE = "/namespaces/topolab"
TRAIN_JOB = f"/apis/trainer.kubeflow.org/v1alpha1{NAMESPACE}/trainjobs/{JOB}"
POD = pod(0, "Running", "n0")
LOG = f"/api/v1{NAMESPACE}/pods/{POD['metadata']['name']}/log"


class Server(BaseHTTPRequestHandler):
    log_status = 200
    patched: list[tuple[str, object]] = []  # noqa: RUF012 - the class is the server's memory

    def do_GET(self) -> None:
        path = urllib.parse.unquote(self.path)
        if path.startswith(LOG):
            told = b"step 7 of 30: 0.5 s\n" if Server.log_status == 200 else b'{"message": "waiting to start"}'
            self._say(Server.log_status, told)
        elif path == TRAIN_JOB:
            self._say(200, json.dumps(train_job()).encode())
        elif "/pods?" in path:
            self._say(200, json.dumps({"items": [POD]}).encode())
        else:
            self._say(200, b'{"items": []}')

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Server.patched.append((self.path, body))
        self._say(200 if self.path == TRAIN_JOB else 404, b'{"message": "not found"}')

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if body.startswith(b"step") else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def api(tmp_path, monkeypatch):
    monkeypatch.setattr(Server, "log_status", 200)
    monkeypatch.setattr(Server, "patched", [])
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        path = tmp_path / "kubeconfig"
        cluster = {"server": f"http://127.0.0.1:{server.server_port}"}
        path.write_text(
            yaml.safe_dump(
                {
                    "clusters": [{"name": "c", "cluster": cluster}],
                    "users": [{"name": "u", "user": {}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )
        yield connect(path, None)
        server.shutdown()
        thread.join()


def test_a_look_reads_the_steps_off_the_log_of_rank_0(api):
    seen = look(api, namespace="topolab", job=JOB)
    assert (seen.phase, seen.end) == ("training", None)
    assert seen.progress is not None
    assert seen.progress.words == "step 7 of 30"


def test_a_container_that_hasnt_begun_has_no_log_yet(api, monkeypatch):
    monkeypatch.setattr(Server, "log_status", 400)
    assert look(api, namespace="topolab", job=JOB).phase.startswith("start: links are probed")


def test_a_log_that_may_not_be_read_is_told(api, monkeypatch):
    monkeypatch.setattr(Server, "log_status", 403)
    with pytest.raises(ValueError, match=r"refuses \(403: waiting to start\)"):
        look(api, namespace="topolab", job=JOB)


def test_a_suspended_job_keeps_all_but_its_pods(api):
    suspend(api, namespace="topolab", job=JOB)
    assert Server.patched == [(TRAIN_JOB, {"spec": {"suspend": True}})]


def test_a_job_that_isnt_there_cant_be_suspended(api):
    with pytest.raises(ValueError, match=r"refuses \(404: not found\)"):
        suspend(api, namespace="topolab", job="other")
