"""The kubelet's part for one pod of a system node: start, probe, restart, report, end."""

import datetime
import logging
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import urllib3

from tests.e2e.cluster.api import Api, ApiError, Document
from tests.e2e.cluster.controllers import Controller, Ports, controller_of
from tests.e2e.cluster.pod_program import NotStartable, Program, container_ports

_PROBE_EVERY_S = 1.0
_PULL_S = 1.0  # no image is there at once; a controller that meets its CRDs in their first second gives up
_RETRY_S = 1.0  # after a fault of its configuration
_FIRST_BACK_OFF_S = 1.0  # the kubelet's 10 s would only make tests slow
_LONGEST_BACK_OFF_S = 16.0
_PROBE = urllib3.PoolManager(timeout=urllib3.Timeout(total=1.0), retries=False)
_LOGGER = logging.getLogger(__name__)


class Host(Protocol):
    """What a pod needs of the machine that it runs on."""

    def prepare(self, pod: Document, controller: Controller, ports: Ports, address: str) -> Program:
        """Its command, environment and files."""
        ...

    def start(self, name: str, program: Program) -> subprocess.Popen[bytes]:
        """Run it."""
        ...

    def new_ports(self, count: int) -> list[int]:
        """Free ports of 127.0.0.1."""
        ...

    def note(self, verb: str, subject: str) -> None:
        """Append to the operation log."""
        ...


@dataclass(kw_only=True)
class SystemPod:
    """One pod, by its uid, from being bound to being gone."""

    pod: Document
    address: str
    api: Api
    host: Host
    ports: dict[int, int] = field(default_factory=dict)
    ready: bool = False
    restarts: int = 0
    _process: subprocess.Popen[bytes] | None = None
    _state: Document = field(default_factory=lambda: {"waiting": {"reason": "ContainerCreating"}})
    _last: Document = field(default_factory=dict)
    _started: str = ""
    _ready_since: str = ""
    _due: float = field(default_factory=lambda: time.monotonic() + _PULL_S)
    _back_off_s: float = _FIRST_BACK_OFF_S
    _kill_at: float | None = None
    _sent: Document | None = None

    @property
    def name(self) -> str:
        """namespace/name."""
        return f"{self.pod['metadata']['namespace']}/{self.pod['metadata']['name']}"

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    def step(self, pod: Document) -> None:
        """Go on by what the pod is now and what its process did since."""
        self.pod = pod
        if "deletionTimestamp" in pod["metadata"]:
            self._end(float(pod["metadata"].get("deletionGracePeriodSeconds") or 0))
            return
        if self._process is not None and not self.running:
            self._note_exit(self._process.returncode)
        if self._process is None and time.monotonic() >= self._due:
            self._start()
        if self.running and time.monotonic() >= self._due:
            self._probe()
        self._report()

    def kill(self) -> None:
        """End the process at once: its node, or its object, is gone."""
        if self._process is not None:
            if self.running:
                self._process.kill()
                self._process.wait()
            self.host.note("stopped", f"Pod/{self.name}")
            self._process = None

    def _start(self) -> None:
        numbers = [port for port in container_ports(self.pod) if isinstance(port, int)]
        self.ports = dict(zip(numbers, self.host.new_ports(len(numbers)), strict=True))
        try:
            program = self.host.prepare(self.pod, _controller(self.pod), self.ports, self.address)
        except NotStartable as reason:
            self._wait(reason.reason, str(reason))
            return
        self._process = self.host.start(self.pod["metadata"]["name"], program)
        self._started, self._due = _now(), 0.0
        self._state = {"running": {"startedAt": self._started}}
        self.host.note("started", f"Pod/{self.name}")

    def _wait(self, reason: str, sentence: str) -> None:
        self._state = {"waiting": {"reason": reason, "message": sentence}}
        self._due = time.monotonic() + _RETRY_S

    def _note_exit(self, code: int) -> None:
        exit_code = code if code >= 0 else 128 - code
        reason = "Completed" if exit_code == 0 else "Error"
        _LOGGER.warning("%s ended with code %d", self.name, exit_code)
        terminated = {"exitCode": exit_code, "reason": reason, "startedAt": self._started, "finishedAt": _now()}
        self._last = {"terminated": terminated}
        sentence = f"back-off {self._back_off_s:g}s restarting failed container"
        self._state = {"waiting": {"reason": "CrashLoopBackOff", "message": sentence}}
        self._due = time.monotonic() + self._back_off_s
        self._back_off_s = min(2 * self._back_off_s, _LONGEST_BACK_OFF_S)
        self.restarts += 1
        self.ready, self._process = False, None
        self.host.note("exited", f"Pod/{self.name}")

    def _probe(self) -> None:
        was, self.ready = self.ready, self._is_healthy()
        if self.ready and not was:
            self._back_off_s = _FIRST_BACK_OFF_S
            self._ready_since = _now()
        self._due = time.monotonic() + _PROBE_EVERY_S if self.ready else 0.0

    def _is_healthy(self) -> bool:
        probe = (self.pod["spec"]["containers"][0].get("readinessProbe") or {}).get("httpGet")
        if probe is None:
            return True
        port = self.ports[container_ports(self.pod)[probe["port"]]]
        try:
            return 200 <= _PROBE.request("GET", f"http://127.0.0.1:{port}{probe.get('path', '/')}").status < 400
        except urllib3.exceptions.HTTPError:
            return False

    def _end(self, grace_s: float) -> None:
        """SIGTERM, after the grace SIGKILL; the object goes when the process is gone."""
        self.ready = False
        if self.running and self._process is not None:
            if self._kill_at is None:
                self._process.send_signal(signal.SIGTERM)
                self._kill_at = time.monotonic() + grace_s
            if time.monotonic() < self._kill_at:
                return
        self.kill()
        metadata = self.pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        self.api.delete(path, grace_s=0, uid=metadata["uid"])

    def _report(self) -> None:
        status = self._status()
        if status == self._sent:
            return
        metadata = self.pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
        try:
            self.api.patch(path, {"metadata": {"uid": metadata["uid"]}, "status": status}, kind="strategic")
            self._sent = status
        except ApiError as error:
            if error.status not in (404, 409):  # deleted meanwhile; the next look says so
                raise

    def _status(self) -> Document:
        waits = "waiting" in self._state and self.restarts == 0
        containers = self.pod["spec"]["containers"]
        return {
            "phase": "Pending" if waits else "Running",
            "hostIP": "127.0.0.1",
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "conditions": [
                _condition("Initialized", holds=True, since=self.pod["metadata"]["creationTimestamp"]),
                _condition("ContainersReady", holds=self.ready, since=self._ready_since),
                _condition("Ready", holds=self.ready, since=self._ready_since),
            ],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "ready": self.ready,
                    "started": self.ready,
                    "restartCount": self.restarts,
                    "state": self._state,
                    "lastState": self._last,
                }
                for container in containers
            ],
        }


def _controller(pod: Document) -> Controller:
    containers = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
    if len(containers) != 1:
        names = ", ".join(container["name"] for container in containers)
        raise NotStartable("ErrImagePull", f"system nodes run pods of one container, this one has {names}")
    image = containers[0]["image"]
    controller = controller_of(image)
    if controller is None:
        raise NotStartable(
            "ErrImagePull", f"system nodes know no program for {image}: tests/e2e/cluster/controllers.py"
        )
    return controller


def _condition(kind: str, *, holds: bool, since: str) -> Document:
    times: Mapping[str, str] = {"lastTransitionTime": since} if since else {}
    return {"type": kind, "status": "True" if holds else "False", **times}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
