"""A real control plane, and the stand-in for pulumi-kubernetes as a process of its own before it."""

import os
import sys
from concurrent import futures
from pathlib import Path

import pytest

from tests.e2e.charts.folder import assemble_charts
from tests.e2e.children import Children, free_port
from tests.e2e.cluster.control_plane import ControlPlane
from tests.e2e.providers.kubernetes_engine import Engine, start_provider
from tests.e2e.site import Site
from tests.e2e.tools import module_path, tool_folder

_CHECKOUT = Path(__file__).parents[3]
_MUTABLE = {"enableServerSideApply": "true", "enableConfigMapMutable": "true", "enableSecretMutable": "true"}
"""As infra.placing.connect sets them."""


class Room:
    """A site with a control plane and nothing in it: no nodes, no controllers but Kubernetes' own."""

    def __init__(self, site, children):
        self.site, self.children = site, children
        self.plane = ControlPlane(
            site.folder / "cluster", kubebox=site.tools / "kubebox", admin=site.kubeconfig, children=children
        )
        self.api = self.plane.start()
        self.plane.await_service_accounts(self.api)
        self._servers = []

    def provider(self, *, kubeconfig=None, environment=None, **settings) -> Engine:
        """Another process of the provider, configured as the program does, with `settings` beside."""
        name = f"provider-{len(self._servers)}"
        command = [sys.executable, "-m", "tests.e2e.providers.kubernetes"]
        ambient = {"PATH": os.defpath, "PYTHONPATH": str(_CHECKOUT), **(environment or {})}
        engine, server = start_provider(self.children, name, command, {**self.site.environment(), **ambient})
        self._servers.append(server)
        given = kubeconfig or self.site.kubeconfig.read_text()
        return engine.configure(kubeconfig=given, **_MUTABLE, **settings)

    def leave(self):
        for server in self._servers:
            server.stop(None)
        for name in ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"):
            self.children.stop(name, kill=True)


@pytest.fixture(scope="session", name="room")
def _room(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kubernetes")
    site = Site(
        folder=folder,
        tools=tool_folder(),
        kubeconfig=folder / "kubeconfig",
        aws_endpoint=f"http://127.0.0.1:{free_port()}",
        charts=assemble_charts(folder / "charts", module_path),
    )
    site.save()
    with Children(site.logs) as children:
        room = Room(site, children)
        yield room
        room.leave()


@pytest.fixture(scope="session", name="provider")
def _provider(room):
    return room.provider()


@pytest.fixture(name="background")
def _background():
    """Calls that go on while the test does something else."""
    pool = futures.ThreadPoolExecutor(4)
    yield pool.submit
    # A call that a failed test left behind ends with the provider.
    pool.shutdown(wait=False, cancel_futures=True)
