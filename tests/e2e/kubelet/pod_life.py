"""One pod from its binding to its end, on a thread of its own."""

import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.e2e.cluster.api import Api, ApiError, Unreachable
from tests.e2e.kubelet import phases
from tests.e2e.kubelet.defaults import without_defaults
from tests.e2e.kubelet.ground import Ground, Pod, Standing
from tests.e2e.kubelet.phases import Status, Times
from tests.e2e.kubelet.references import Missing, references_of
from workloads.lab.documents import References
from workloads.lab.links import PodLink
from workloads.lab.pod_init import START_ERROR_CODE
from workloads.lab.pod_program import PodResult, Surroundings

_LOOK_EVERY_S = 0.1
_ASK_AGAIN_S = 0.5
_LOST_CODE = 137


@dataclass(frozen=True, kw_only=True)
class Housing:
    """What every pod of this kubelet gets."""

    interpreter: Path
    """What `python` means in the pods."""
    environment: Mapping[str, str]
    run_as: tuple[int, int] | None
    states: Path
    """Folder of the pods' own folders, each gone with its pod."""
    logs: Path
    """Folder of what the pods print; kept."""

    def log_of(self, pod: Pod) -> Path:
        """The log of one pod."""
        return self.logs / f"{pod['metadata']['namespace']}.{pod['metadata']['name']}.log"


class PodLife(threading.Thread):
    """Starts the pod, tells the API server what becomes of it, and ends it when asked to."""

    def __init__(self, api: Api, ground: Ground, housing: Housing, pod: Pod) -> None:
        super().__init__(daemon=True, name=pod["metadata"]["name"])
        self._api, self._ground, self._housing, self._pod = api, ground, housing, pod
        self._seen = datetime.now(UTC)
        self._asked = threading.Event()
        self._silent = False
        self._grace_s = 0.0

    def end(self, grace_s: float, *, silent: bool = False) -> None:
        """Ask for its end: SIGTERM, and after `grace_s` a kill. `silent`: the API server isn't told."""
        self._grace_s, self._silent = grace_s, silent or self._silent
        self._asked.set()

    def run(self) -> None:
        """The whole life; at its end no process and no folder of it is left, only its log."""
        state = self._housing.states / self._pod["metadata"]["uid"]
        try:
            self._live(state)
        finally:
            shutil.rmtree(state, ignore_errors=True)

    def _live(self, state: Path) -> None:
        self._tell(phases.waiting(self._pod, self._seen, "ContainerCreating"))
        references = self._references()
        if references is None:
            self._tell_end(datetime.now(UTC), _never_started(self._pod, "deleted before it could start"))
            return
        state.mkdir(parents=True)
        _give(state, self._housing.run_as)
        began = datetime.now(UTC)
        try:
            standing = self._ground.start(
                without_defaults(self._pod), lambda link, hosts: self._surroundings(state, references, link, hosts)
            )
        except (ValueError, OSError) as error:
            self._refuse(began, str(error))
            return
        times = Times(seen=self._seen, began=began, ended=began)
        self._tell(phases.running(self._pod, times, standing.address))
        result = self._watch(standing)
        self._ground.leave(standing)
        self._tell_end(began, result)

    def _refuse(self, began: datetime, sentence: str) -> None:
        """It can't run here. One that is to be started over waits: its owner would replace it for ever."""
        if self._pod["spec"].get("restartPolicy") != "Never":
            self._tell(phases.waiting(self._pod, self._seen, "CreateContainerError", sentence))
            self._asked.wait()
        self._tell_end(began, _never_started(self._pod, sentence))

    def _references(self) -> References | None:
        """What the pod names, waited for; None when it was asked to end meanwhile."""
        told = ""
        while not self._asked.is_set():
            try:
                return references_of(self._api, self._pod)
            except Unreachable:
                pass
            except (Missing, ApiError, ValueError) as error:
                if str(error) != told:
                    told = str(error)
                    self._tell(phases.waiting(self._pod, self._seen, "CreateContainerConfigError", told))
            self._asked.wait(_ASK_AGAIN_S)
        return None

    def _surroundings(self, state: Path, references: References, link: PodLink | None, hosts: str) -> Surroundings:
        return Surroundings(
            state=state,
            log=self._housing.log_of(self._pod),
            references=references,
            link=link,
            hosts=hosts,
            interpreter=self._housing.interpreter,
            environment=self._housing.environment,
            run_as=self._housing.run_as,
            node=self._pod["spec"]["nodeName"],
        )

    def _watch(self, standing: Standing) -> PodResult:
        while (result := standing.running.poll()) is None:
            if self._asked.wait(_LOOK_EVERY_S):
                return standing.running.terminate(self._grace_s)
            self._ground.keep_names(standing)
        return result

    def _tell_end(self, began: datetime, result: PodResult) -> None:
        log = self._housing.log_of(self._pod)
        said = log.read_text(errors="replace") if log.exists() else ""
        times = Times(seen=self._seen, began=began, ended=datetime.now(UTC))
        self._tell(phases.ended(self._pod, times, result, said))

    def _tell(self, status: Status) -> None:
        tell(self._api, self._pod, status, gives_up=lambda: self._silent)


def tell(api: Api, pod: Pod, status: Status, *, gives_up: Any = lambda: False) -> None:
    """Patch a pod's status, again until the API server hears it; a pod that is gone needs none."""
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
    while not gives_up():
        try:
            api.patch(path, {"metadata": {"uid": metadata["uid"]}, "status": status}, kind="strategic")
        except Unreachable:
            pass
        except ApiError as error:
            if error.status in (404, 409):
                return
            if error.status < 500 and error.status != 429:
                raise
        else:
            return
        time.sleep(_ASK_AGAIN_S)


def lost(pod: Pod) -> Status:
    """Of a pod that ran under a kubelet before this one."""
    now = datetime.now(UTC)
    name = pod["spec"]["containers"][0]["name"]
    result = PodResult(_LOST_CODE, "Error", name, "")
    return phases.ended(pod, Times(seen=now, began=now, ended=now), result, "its kubelet ended before it did\n")


def _never_started(pod: Pod, why: str) -> PodResult:
    return PodResult(START_ERROR_CODE, "StartError", pod["spec"]["containers"][0]["name"], why)


def _give(folder: Path, owner: tuple[int, int] | None) -> None:
    if owner is not None:
        shutil.chown(folder, *owner)
