"""A registry, a Helm repository and a model hub on this computer, as far as a preflight asks them."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DIGEST = f"sha256:{'a' * 64}"
INDEX = """\
apiVersion: v1
entries:
  other:
  - version: 9.9.9
  plugin:
  - apiVersion: v2
    dependencies:
    - name: nfd
      version: 0.18.3
    version: 0.20.0
  - apiVersion: v2
    version: "0.19.2"
generated: "2026-08-01"
"""


class Shelf(BaseHTTPRequestHandler):
    """Registries want a token before they show a manifest, as those of charts and images do."""

    def do_HEAD(self) -> None:
        named = self.path.removeprefix("/v2/")
        if self.headers.get("Authorization") != "Bearer reads":
            realm = f"http://{self.headers['Host']}/token"
            closed = named.startswith("closed/")
            challenge = "Basic" if closed else f'Bearer realm="{realm}",service="shelf",scope="repository:{named}:pull"'
            self._say(401, {"WWW-Authenticate": challenge})
        elif named == "images/trainer/manifests/1.0":
            self._say(200, {"Docker-Content-Digest": DIGEST})
        else:
            self._say(404, {})

    def do_GET(self) -> None:
        token = self.headers.get("Authorization", "")
        if self.path.startswith("/token?service=shelf"):
            self._say(200, {}, b'{"token": "reads"}')
        elif self.path == "/charts/index.yaml":
            self._say(200, {}, INDEX.encode())
        elif self.path.startswith("/api/models/meta-llama/"):
            self._say({"": 401, "Bearer accepted": 200}.get(token, 403), {})
        else:
            self._say(404, {})

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _say(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def shelf() -> Iterator[str]:
    """Its host and port, for as long as it is open."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shelf)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
