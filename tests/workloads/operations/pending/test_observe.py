"""Reading a cluster over plain HTTP, and what a user hears when it can't be read."""

import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from workloads.operations.pending.observe import _CONFIG, connect, observe

POD = {"metadata": {"name": "a", "namespace": "topolab"}, "spec": {"containers": []}, "status": {"phase": "Pending"}}
ANSWERS = {
    "/apis/trainer.kubeflow.org/v1alpha1/namespaces/topolab/trainjobs/job": {"metadata": {"name": "job"}},
    "/api/v1/namespaces/topolab/pods?labelSelector=jobset.sigs.k8s.io/jobset-name=job": {"items": [POD]},
    "/api/v1/namespaces/topolab/events": {"items": [{"metadata": {}, "involvedObject": {"kind": "Pod"}}]},
    "/api/v1/namespaces/default/events": {"items": [{"metadata": {}, "involvedObject": {"kind": "NodePool"}}]},
    "/apis/karpenter.sh/v1/nodepools": {"items": [{"metadata": {"name": "gpu"}}]},
}


@pytest.fixture
def server():
    """Answers these and 404 for all else; `status` other than 200 refuses everything."""

    class Handler(BaseHTTPRequestHandler):
        status = 200

        def do_GET(self) -> None:
            path = urllib.parse.unquote(self.path)
            listed: dict[str, object] | None = {"items": []} if "jobset-name" in path else None
            known = ANSWERS.get(path, listed) if Handler.status == 200 else None
            status = 404 if known is None and Handler.status == 200 else Handler.status
            body = json.dumps(known or {"kind": "Status", "message": "trainjobs is forbidden"}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield listening, Handler
        listening.shutdown()
        thread.join()


def kubeconfig(folder, port: int):
    path = folder / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                "users": [{"name": "u", "user": {}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    return path


def test_everything_that_bears_on_a_job_is_read_as_the_server_gives_it(server, tmp_path):
    api = connect(kubeconfig(tmp_path, server[0].server_port), None)
    seen = observe(api, namespace="topolab", job="job")
    assert seen.train_job == {"metadata": {"name": "job"}}
    assert seen.pods[0]["status"] == {"phase": "Pending"}
    assert [event["involvedObject"]["kind"] for event in seen.events] == ["Pod", "NodePool"]
    assert seen.pool("gpu") is not None
    # A cluster without Karpenter has no such kind.
    assert (seen.node_classes, seen.node_claims) == ([], [])


def test_a_job_that_is_not_there(server, tmp_path):
    api = connect(kubeconfig(tmp_path, server[0].server_port), "x")
    assert observe(api, namespace="topolab", job="other").train_job is None


def test_a_refusal_names_the_cluster_and_its_words(server, tmp_path):
    server[1].status = 403
    api = connect(kubeconfig(tmp_path, server[0].server_port), None)
    with pytest.raises(
        ValueError, match=r"127\.0\.0\.1:\d+ refuses \(403: trainjobs is forbidden\); .*whose credentials"
    ):
        observe(api, namespace="topolab", job="job")


def test_a_cluster_that_does_not_answer_is_named(tmp_path):
    api = connect(kubeconfig(tmp_path, 1), None)
    with pytest.raises(
        ValueError, match=r"http://127\.0\.0\.1:1 doesn't answer \(NewConnectionError\); .*apiAccessCidrs"
    ):
        observe(api, namespace="topolab", job="job")


def test_a_kubeconfig_without_a_cluster_is_named_with_what_to_give(tmp_path):
    with pytest.raises(ValueError, match=r"kubeconfig: no cluster can be taken from it .*give --kubeconfig FILE"):
        connect(kubeconfig(tmp_path, 1), "other")


def test_a_kubeconfig_that_is_not_there_is_named_alone(tmp_path):
    with pytest.raises(
        ValueError, match=r"--kubeconfig \S*nowhere: there is no such file; write it with `pulumi stack"
    ):
        connect(tmp_path / "nowhere", None)


@pytest.mark.parametrize("text", ["a: [", "just a text", "clusters: 3", "- 1", b"\xff\xfe\x00"])
def test_a_file_that_is_something_else_is_told_to_be_no_kubeconfig(text, tmp_path):
    path = tmp_path / "other"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=r"other: no cluster can be taken from it \(.*kube-?config.*\); give"):
        connect(path, None)


def test_an_ambient_kubeconfig_that_nobody_wrote_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(_CONFIG.kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    with pytest.raises(ValueError, match=r"KUBECONFIG or ~/.kube/config: no cluster can be taken from it"):
        connect(None, None)
