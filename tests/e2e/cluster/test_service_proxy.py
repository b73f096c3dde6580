"""The API server's way to Services: to a ready pod's port, or a refusal that says why."""

import socket
import threading

import pytest

from tests.e2e.children import free_port, wait_until
from tests.e2e.cluster.service_proxy import ServiceProxy

SERVICE = ("10.96.0.7", 443)


@pytest.fixture
def proxy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    proxy = ServiceProxy(tmp_path / "s")
    proxy.start()
    wait_until((tmp_path / "s").exists, 5, "it listens")
    return proxy


def connect(tmp_path, target: str) -> socket.socket:
    caller = socket.socket(socket.AF_UNIX)
    caller.settimeout(5)
    caller.connect(str(tmp_path / "s"))
    caller.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return caller


@pytest.fixture
def shouter():
    """A server that answers in capitals and hangs up."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        caller, _ = listener.accept()
        with caller:
            caller.sendall(caller.recv(100).upper())

    thread = threading.Thread(target=serve)
    thread.start()
    yield listener.getsockname()[1]
    thread.join(5)
    listener.close()


def test_bytes_go_both_ways(proxy, shouter, tmp_path):
    proxy.route({SERVICE: shouter})
    with connect(tmp_path, "10.96.0.7:443") as caller:
        assert caller.recv(100) == b"HTTP/1.1 200 OK\r\n\r\n"
        caller.sendall(b"review")
        assert caller.recv(100) == b"REVIEW"
        assert caller.recv(100) == b""


def test_a_service_without_a_ready_pod_is_refused(proxy, tmp_path):
    proxy.route({SERVICE: 1})
    with connect(tmp_path, "10.96.0.8:443") as caller:
        assert caller.recv(100).startswith(b"HTTP/1.1 503 no ready pod behind this Service")


def test_a_pod_that_listens_no_more_is_refused(proxy, tmp_path):
    proxy.route({SERVICE: free_port()})
    with connect(tmp_path, "10.96.0.7:443") as caller:
        assert caller.recv(100).startswith(b"HTTP/1.1 502 connection refused")


@pytest.mark.usefixtures("proxy")
def test_noise_ends_no_more_than_its_connection(tmp_path):
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(tmp_path / "s"))
        caller.sendall(b"nonsense\r\n\r\n")
        assert caller.recv(100).startswith(b"HTTP/1.1 400")
    with connect(tmp_path, "10.96.0.7:443") as caller:
        assert caller.recv(100).startswith(b"HTTP/1.1 503")
