"""Start the fake account as a child process, and begin it anew."""

import sys
import urllib.error
import urllib.request
from pathlib import Path

from tests.e2e.children import Children, free_port

READY_S = 60.0
"""About 2 s on a free machine."""
_ROOT = Path(__file__).resolve().parents[3]


def start_cloud(folder: Path, children: Children) -> str:
    """The URL of a fresh account, ready. `folder` is the site's: operations, faults and `site.json` lie there."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = {"PYTHONPATH": str(_ROOT), "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", "tests.e2e.cloud", str(port), "--folder", str(folder)]
    children.start("cloud", command, environment, _ROOT)
    children.await_ready("cloud", lambda: _answers(url), READY_S)
    return url


def reset_cloud(url: str) -> None:
    """Begin anew: everything in the account is forgotten. The operation log stays."""
    urllib.request.urlopen(urllib.request.Request(f"{url}/topolab/reset", method="POST"), timeout=30).close()


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/topolab/ready", timeout=5).close()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
    return True
