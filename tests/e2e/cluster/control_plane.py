"""etcd and the Kubernetes control plane as processes of this machine, RBAC on, loopback only."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.children import Children
from tests.e2e.cluster.api import Api, ApiError, Unreachable, kubeconfig
from tests.e2e.cluster.certificates import Authority, signing_key
from tests.e2e.cluster.ports import quiet_ports

SERVICES = "10.96.0.0/16"
EGRESS_SOCKET = "services.sock"
"""Through it the API server reaches Services (webhooks). Relative to its folder: a socket's path is short."""
READY_S = 60.0
"""Generous: the machine of a test may be busy."""
_QUIET = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


@dataclass(frozen=True, kw_only=True)
class Ports:
    """Where each part listens."""

    etcd: int
    etcd_peers: int
    api_server: int
    controller_manager: int
    scheduler: int


class ControlPlane:
    """Started once; its API server may be away for a while and comes back at the same address."""

    def __init__(self, folder: Path, *, kubebox: Path, admin: Path, children: Children) -> None:
        self._folder, self._kubebox, self._children = folder, kubebox, children
        etcd, peers, api_server, manager, scheduler = quiet_ports(5)
        self._ports = Ports(
            etcd=etcd, etcd_peers=peers, api_server=api_server, controller_manager=manager, scheduler=scheduler
        )
        self.admin = admin
        """The kubeconfig that is written."""

    @property
    def server(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self._ports.api_server}"

    def start(self) -> Api:
        """All of it; returns when the API server is ready, the others follow within a second or two."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write_identities()
        self._write_egress()
        self._start("etcd", self._etcd())
        api = self.start_api_server()
        self._start("kube-controller-manager", self._controller_manager())
        self._start("kube-scheduler", self._scheduler())
        return api

    def await_service_accounts(self, api: Api) -> None:
        """Wait for the controller manager's first work, without which no pod is admitted."""
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._children.await_ready("kube-controller-manager", lambda: api.exists(account), READY_S)

    def start_api_server(self) -> Api:
        """Start it, and wait until it says that it is ready."""
        self._start("kube-apiserver", self._api_server())
        api = Api.of(self.admin)
        self._children.await_ready("kube-apiserver", lambda: _is_ready(api), READY_S)
        return api

    def stop_api_server(self) -> None:
        """Let it vanish, as a network or a machine does; etcd and all others live on."""
        self._children.stop("kube-apiserver", kill=True)

    def _start(self, name: str, flags: Mapping[str, object]) -> None:
        words = [f"--{flag}={value}" for flag, value in flags.items()]
        self._children.start(name, [self._kubebox, name, *words], _QUIET, folder=self._folder)

    def _write_identities(self) -> None:
        authority = Authority.make()
        authority.pair.write(self._folder, "ca")
        # The first address of the range is the Service `kubernetes`, as controllers in pods know the server.
        hosts = ("127.0.0.1", "10.96.0.1", "localhost", "kubernetes.default.svc")
        authority.issue("kube-apiserver", hosts=hosts).write(self._folder, "server")
        admin = authority.issue("admin", organisations=["system:masters"])
        self._write_kubeconfig(self.admin, authority, admin.certificate, admin.key)
        for name in ("kube-controller-manager", "kube-scheduler"):
            # Kubernetes' own bootstrap roles are bound to these names.
            pair = authority.issue(f"system:{name}")
            self._write_kubeconfig(self._folder / f"{name}.kubeconfig", authority, pair.certificate, pair.key)
        private, public = signing_key()
        (self._folder / "accounts.key").write_bytes(private)
        (self._folder / "accounts.pub").write_bytes(public)

    def _write_kubeconfig(self, path: Path, authority: Authority, certificate: bytes, key: bytes) -> None:
        user = {
            "client-certificate-data": base64.b64encode(certificate).decode(),
            "client-key-data": base64.b64encode(key).decode(),
        }
        path.touch(mode=0o600)
        path.write_text(kubeconfig(self.server, authority.pair.certificate, user))

    def _write_egress(self) -> None:
        selection = {
            "name": "cluster",
            "connection": {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": EGRESS_SOCKET}}},
        }
        document = {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [selection],
        }
        (self._folder / "egress.yaml").write_text(json.dumps(document))

    def _etcd(self) -> dict[str, object]:
        client, peer = (f"http://127.0.0.1:{port}" for port in (self._ports.etcd, self._ports.etcd_peers))
        return {
            "data-dir": self._folder / "etcd",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            # Nothing here outlives the test.
            "unsafe-no-fsync": "true",
        }

    def _api_server(self) -> dict[str, object]:
        return {
            "etcd-servers": f"http://127.0.0.1:{self._ports.etcd}",
            "secure-port": self._ports.api_server,
            "bind-address": "127.0.0.1",
            "advertise-address": "127.0.0.1",
            "tls-cert-file": self._folder / "server.crt",
            "tls-private-key-file": self._folder / "server.key",
            "client-ca-file": self._folder / "ca.crt",
            "service-account-key-file": self._folder / "accounts.pub",
            "service-account-signing-key-file": self._folder / "accounts.key",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-cluster-ip-range": SERVICES,
            "authorization-mode": "Node,RBAC",
            "allow-privileged": "true",
            # A loopback address is refused in an EndpointSlice.
            "endpoint-reconciler-type": "none",
            "egress-selector-config-file": self._folder / "egress.yaml",
        }

    def _controller_manager(self) -> dict[str, object]:
        return {
            **self._client_of_the_server("kube-controller-manager", self._ports.controller_manager),
            "service-account-private-key-file": self._folder / "accounts.key",
            "root-ca-file": self._folder / "ca.crt",
            "use-service-account-credentials": "true",
        }

    def _scheduler(self) -> dict[str, object]:
        return self._client_of_the_server("kube-scheduler", self._ports.scheduler)

    def _client_of_the_server(self, name: str, port: int) -> dict[str, object]:
        own = self._folder / f"{name}.kubeconfig"
        return {
            "kubeconfig": own,
            "authentication-kubeconfig": own,
            "authorization-kubeconfig": own,
            "leader-elect": "false",
            "bind-address": "127.0.0.1",
            "secure-port": port,
            "cert-dir": self._folder / name,
        }


def _is_ready(api: Api) -> bool:
    try:
        return api.text("/readyz") == "ok"
    except (ApiError, Unreachable):
        return False
