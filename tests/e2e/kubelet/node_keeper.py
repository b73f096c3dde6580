"""One node: its signs of life, and the pods that the scheduler bound to it."""

import sys
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.e2e.cluster.api import Api, ApiError, Unreachable
from tests.e2e.kubelet.ground import Ground, Pod
from tests.e2e.kubelet.machine import LEASE_FOLDER, Share, lease, node, node_status
from tests.e2e.kubelet.pod_life import Housing, PodLife, lost, tell

_LOOK_EVERY_S = 0.25
_BEAT_EVERY_S = 5.0
_ENDED = ("Succeeded", "Failed")


class NodeKeeper(threading.Thread):
    """Looks at its pods four times a second: a list from the server's cache costs less than a watch's troubles."""

    def __init__(self, name: str, share: Share, api: Api, ground: Ground, housing: Housing) -> None:
        super().__init__(daemon=True, name=name)
        self._share, self._api, self._ground, self._housing = share, api, ground, housing
        self._since = datetime.now(UTC)
        self._lives: dict[str, PodLife] = {}
        self._stop = threading.Event()

    def run(self) -> None:
        """Until `stop`; an API server that is away is waited for."""
        beat_at = 0.0
        while not self._stop.is_set():
            try:
                if time.monotonic() >= beat_at:
                    self._beat()
                    beat_at = time.monotonic() + _BEAT_EVERY_S
                self._look()
            except Unreachable:
                beat_at = 0.0
            except ApiError as error:
                print(f"{self.name}: {error}", file=sys.stderr, flush=True)
            self._stop.wait(_LOOK_EVERY_S)

    def stop(self, grace_s: float) -> None:
        """End the node's pods without a word to the API server, as a machine that goes down."""
        self._stop.set()
        self.join()
        for life in self._lives.values():
            life.end(grace_s, silent=True)
        for life in self._lives.values():
            life.join()

    def _beat(self) -> None:
        now = datetime.now(UTC)
        if not self._api.exists(f"/api/v1/nodes/{self.name}"):
            self._api.create("/api/v1/nodes", node(self.name))
        status = node_status(self.name, self._share, self._since, now)
        self._api.patch(f"/api/v1/nodes/{self.name}/status", status, kind="strategic")
        if self._api.exists(f"{LEASE_FOLDER}/{self.name}"):
            self._api.patch(f"{LEASE_FOLDER}/{self.name}", lease(self.name, now))
        else:
            self._api.create(LEASE_FOLDER, lease(self.name, now))

    def _look(self) -> None:
        bound = self._api.items("/api/v1/pods", fieldSelector=f"spec.nodeName={self.name}")
        for pod in bound:
            self._attend({"apiVersion": "v1", "kind": "Pod", **pod})
        gone = self._lives.keys() - {pod["metadata"]["uid"] for pod in bound}
        for uid in gone:
            # Deleted by force: nobody waits for it and nobody is told.
            self._lives[uid].end(0.0, silent=True)
            if not self._lives[uid].is_alive():
                del self._lives[uid]

    def _attend(self, pod: Pod) -> None:
        life = self._lives.get(pod["metadata"]["uid"])
        deleted = "deletionTimestamp" in pod["metadata"]
        if life is None and not deleted and _phase(pod) not in _ENDED:
            self._begin(pod)
        elif deleted and life is not None and life.is_alive():
            life.end(float(pod["metadata"].get("deletionGracePeriodSeconds") or 0))
        elif deleted:
            _remove(self._api, pod)

    def _begin(self, pod: Pod) -> None:
        if _phase(pod) == "Running":
            tell(self._api, pod, lost(pod))
            return
        life = PodLife(self._api, self._ground, self._housing, pod)
        self._lives[pod["metadata"]["uid"]] = life
        life.start()


def _phase(pod: Mapping[str, Any]) -> str:
    return str((pod.get("status") or {}).get("phase", "Pending"))


def _remove(api: Api, pod: Pod) -> None:
    """The kubelet's last word: nothing of the pod is left on the node."""
    metadata = pod["metadata"]
    if metadata.get("deletionGracePeriodSeconds") != 0:
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        api.delete(path, grace_s=0, uid=metadata["uid"])
