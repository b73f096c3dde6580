"""The program's AWS half on the real engine: what goes into the cluster is a component without objects.

So the AWS provider, the component of EKS and the order between them are tried without a control plane; the program
itself runs whole, from its own stack files.
"""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.engine.project import copy_project

_MAIN = '''"""Runs the program with components in place of Kubernetes objects."""

import runpy
import sys

import pulumi

import infra.program

WITHOUT_OUTPUTS = {"metadata": {"name": "placed"}}


class Placed(pulumi.ComponentResource):
    """Stands where an object of the cluster stands: same name, parent and dependencies."""

    def __init__(self, name, opts):
        super().__init__("topolab:test:Placed", name, None, opts)
        self.metadata = pulumi.Output.from_input(WITHOUT_OUTPUTS["metadata"])
        self.register_outputs({})


def place(name, document, opts):
    return Placed(f"{document['kind']}-{name}", opts)


def install(parent, release, *, folder, depends_on):
    return Placed(f"release-{release.name}", parent.child(depends_on=list(depends_on)))


for module in [module for name, module in sys.modules.items() if name.startswith("infra.")]:
    for replaced in (place, install):
        if hasattr(module, replaced.__name__):
            setattr(module, replaced.__name__, replaced)
runpy.run_path("program.py", run_name="__main__")
'''


def aws_half(folder: Path) -> Path:
    """A checkout of the program whose `__main__.py` puts components in place of Kubernetes objects."""
    project = copy_project(folder)
    (project / "__main__.py").rename(project / "program.py")
    (project / "__main__.py").write_text(_MAIN)
    return project


@contextmanager
def healthy_server(kubeconfig: Path) -> Iterator[None]:
    """An API server that says it is healthy and nothing else, and its kubeconfig."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Healthy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    authority = kubeconfig.with_name("ca.crt")
    authority.write_text("no certificate")
    cluster = {"server": f"http://127.0.0.1:{server.server_port}", "certificate-authority": str(authority)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "site", "cluster": cluster}],
        "contexts": [{"name": "site", "context": {"cluster": "site", "user": "admin"}}],
        "current-context": "site",
        "users": [{"name": "admin", "user": {"token": "a-token-that-only-the-state's-cipher-text-holds"}}],
    }
    kubeconfig.write_text(json.dumps(config))
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


class _Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""
