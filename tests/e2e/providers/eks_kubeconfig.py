"""The kubeconfig that the component hands out, and its wait for the API server."""

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import yaml

HEALTHY_S = 60.0
"""The real one looks at /healthz for up to 300 s, and goes on in any case."""
_FILES = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}


def kubeconfig_json(path: Path) -> str:
    """The kubeconfig with its certificates inside, as EKS's is. FileNotFoundError where there is none."""
    return json.dumps(_embedded(yaml.safe_load(path.read_text()), path.parent))


def server_of(kubeconfig: str) -> str:
    """The API server's address."""
    return str(json.loads(kubeconfig)["clusters"][0]["cluster"]["server"])


def wait_for_health(server: str, within_s: float = HEALTHY_S) -> bool:
    """Look at /healthz until it says 200; False after the time, which stops nobody, as in the real component."""
    trusting = ssl._create_unverified_context()  # as the real one: the certificate is the cluster's own
    limit = time.monotonic() + within_s
    while time.monotonic() < limit:
        try:
            with urllib.request.urlopen(f"{server}/healthz", timeout=1, context=trusting) as answer:
                if answer.status == 200:
                    return True
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.2)
    return False


def _embedded(config: Any, folder: Path) -> Any:
    """Without references to files: a kubeconfig of EKS holds everything."""
    if isinstance(config, list):
        return [_embedded(item, folder) for item in config]
    if not isinstance(config, dict):
        return config
    return {
        _FILES.get(key, key): _base64(folder / value) if key in _FILES else _embedded(value, folder)
        for key, value in config.items()
    }


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
