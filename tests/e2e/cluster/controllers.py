"""The images that system nodes can run: which binary stands for each, and what gives it ports of its own.

A pod's own address has every port free; here all controllers share one host. So each is told other ports, in
the file or the variables in which it looks for them, and nothing else about it is changed but two things: its
leader election (the lease of a killed predecessor would hold the next one up for 15 s) and its own certificate
keeping (it would write into a Secret, and no kubelet would bring that back as a file).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.e2e.cluster.api import Document
from tests.e2e.karpenter.process import karpenter_environment

Ports = Mapping[int, int]
"""Container port to the port of this host that stands for it."""


def _nothing(_: Ports) -> Document:
    return {}


def _no_variables(_: Mapping[str, str], __: Ports) -> dict[str, str]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Controller:
    """One binary of the tools folder."""

    binary: str
    configuration: Callable[[Ports], Document] = _nothing
    """Laid over the mounted file of kind Configuration."""
    environment: Callable[[Mapping[str, str], Ports], dict[str, str]] = field(default=_no_variables)
    """Laid over the pod's own variables, which it is given."""


def controller_of(image: str) -> Controller | None:
    """The entry of an image, whatever its registry and tag; None where there is none."""
    repository = image.partition("@")[0].rpartition("/")
    name = repository[2].partition(":")[0]
    folder = repository[0].rpartition("/")[2]
    return _BY_IMAGE.get(name) or _BY_IMAGE.get(f"{folder}/{name}")


def _trainer(ports: Ports) -> Document:
    return {
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ports[8081]}"},
        "metrics": {"bindAddress": f"127.0.0.1:{ports[8443]}"},
        "webhook": {"host": "127.0.0.1", "port": ports[9443]},
        "statusServer": {"port": ports[10443]},
        "leaderElection": {"leaderElect": False},
        "certManagement": {"enable": False},
    }


def _jobset(ports: Ports) -> Document:
    return {
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ports[8081]}"},
        "metrics": {"bindAddress": f"127.0.0.1:{ports[8443]}"},
        "webhook": {"host": "127.0.0.1", "port": ports[9443]},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
    }


_BY_IMAGE: Mapping[str, Controller] = {
    "trainer-controller-manager": Controller(binary="trainer-controller-manager", configuration=_trainer),
    "jobset": Controller(binary="jobset", configuration=_jobset),
    "karpenter/controller": Controller(binary="karpenter", environment=karpenter_environment),
}
"""By the image's name; with its folder where the name alone says too little."""
