"""This machine as the host of system pods: folders, ports, certificates, identities and processes."""

import itertools
import subprocess
from pathlib import Path

from tests.e2e.children import Children
from tests.e2e.cluster.api import Api, ApiError, Document, kubeconfig
from tests.e2e.cluster.certificates import Authority
from tests.e2e.cluster.controllers import Controller, Ports
from tests.e2e.cluster.pod_program import NotStartable, Place, Program, prepare
from tests.e2e.cluster.ports import quiet_ports
from tests.e2e.cluster.system_nodes import NodeGroups
from tests.e2e.operations import Operation, append
from tests.e2e.site import REGION, Site

_TOKEN_S = 3607  # what the kubelet asks for; to that alone the server grants a year, for clients that can't renew
_IDENTITY = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


class ProcessHost:
    """Gives a pod what a node gives it. `groups`: None without a cloud."""

    def __init__(self, site: Site, folder: Path, groups: NodeGroups | None, children: Children) -> None:
        self._site, self._folder, self._groups, self._children = site, folder, groups, children
        self._authority = Authority.read(folder, "ca")
        self._api = Api.of(site.kubeconfig)
        self._starts = itertools.count(1)

    def prepare(self, pod: Document, controller: Controller, ports: Ports, address: str) -> Program:
        """As `system_pods.Host`; each start has a folder, a token and a certificate of its own."""
        metadata = pod["metadata"]
        folder = self._folder / "pods" / f"{metadata['name']}-{next(self._starts)}"
        folder.mkdir(parents=True)
        place = Place(
            folder=folder,
            tools=self._site.tools,
            ports=ports,
            address=address,
            write_certificates=lambda where: self._write_certificate(metadata["namespace"], where),
            surroundings=self._surroundings(pod, folder),
        )
        return prepare(pod, controller, place, self._api)

    def start(self, name: str, program: Program) -> subprocess.Popen[bytes]:
        """As `system_pods.Host`."""
        return self._children.start(name, program.command, program.environment, folder=program.folder).process

    def new_ports(self, count: int) -> list[int]:
        """As `system_pods.Host`."""
        return quiet_ports(count)

    def note(self, verb: str, subject: str) -> None:
        """As `system_pods.Host`."""
        append(self._site.operations, Operation(who="cluster", verb=verb, subject=subject))

    def _write_certificate(self, namespace: str, folder: Path) -> None:
        """For every Service of the namespace: the server dials <service>.<namespace>.svc."""
        self._authority.issue("webhook", hosts=[f"*.{namespace}.svc"]).write(folder, "tls")

    def _surroundings(self, pod: Document, folder: Path) -> dict[str, str]:
        """The API server and the cloud, as this pod's service account may use them."""
        namespace, account = pod["metadata"]["namespace"], pod["spec"].get("serviceAccountName", "default")
        own = folder / "kubeconfig"
        own.touch(mode=0o600)
        own.write_text(
            kubeconfig(
                self._api.server,
                self._authority.pair.certificate,
                {"token": self._token(pod, namespace, account)},
                namespace,
            )
        )
        return {"KUBECONFIG": str(own), **self._cloud(namespace, account)}

    def _token(self, pod: Document, namespace: str, account: str) -> str:
        """Bound to the pod: it ends with it."""
        reference = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"],
        }
        request = {"expirationSeconds": _TOKEN_S, "boundObjectRef": reference}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        try:
            answer = self._api.create(path, {"spec": request})
        except ApiError as error:
            raise NotStartable("CreateContainerConfigError", error.message) from error
        return str(answer["status"]["token"])

    def _cloud(self, namespace: str, account: str) -> dict[str, str]:
        """Where AWS is; credentials only where an association exists now, as EKS injects them at admission."""
        if self._groups is None:
            return {}
        known = {"AWS_REGION": REGION, **self._site.environment()}
        given = self._groups.has_identity(namespace, account)
        return {
            key: value for key, value in known.items() if key.startswith("AWS_") and (given or key not in _IDENTITY)
        }
