"""`python -m tests.e2e.kubelet --kubeconfig FILE --folder DIR`: nodes of this machine, until it is told to end.

Runs the service in namespaces of its own but for the network: the API server is on the machine's loopback, and the
service makes a network for the pods alone.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from tests.e2e.kubelet.service import STOP_GRACE_S, Settings
from workloads.lab import kernel
from workloads.lab.capability import Capability, probe

_ROOT = Path(__file__).resolve().parents[3]
_PATIENCE_S = 2 * STOP_GRACE_S


class _Asked(Exception):  # noqa: N818 - a wish, and no fault
    """SIGTERM or Ctrl-C came."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the service, wait, and end it; 0 when it was asked to end."""
    given = _parser().parse_args(arguments)
    capability = probe()
    settings = Settings(
        kubeconfig=str(given.kubeconfig.absolute()),
        folder=str(given.folder.absolute()),
        nodes=tuple(f"process-{index}" for index in range(given.nodes)),
        pods_per_node=given.pods_per_node,
        interpreter=str(given.interpreter.absolute()),
        namespaces=capability.rights is not None,
        run_as=(os.getuid(), os.getgid()) if capability.rights == "sudo" else None,
    )
    print(f"nodes {', '.join(settings.nodes)}: {capability.reason}", flush=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _note)
    return _serve(command(capability), settings)


def command(capability: Capability) -> list[str]:
    """The service in the lab's outer namespaces without `--net`."""
    own = [word for word in capability.command([]) if word != "--net"]
    # `env`, because sudo clears the environment that it is given; -P, so that the folder of the call isn't searched.
    return [*own, "/usr/bin/env", f"PYTHONPATH={_ROOT}", sys.executable, "-P", "-m", "tests.e2e.kubelet.service"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.kubelet", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="an administrator's, with its data inside")
    parser.add_argument("--folder", type=Path, required=True, help="for the pods' folders and logs")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--pods-per-node", type=int, default=8)
    parser.add_argument("--interpreter", type=Path, default=Path(sys.executable), help="what `python` means in pods")
    return parser


def _serve(words: Sequence[str], settings: Settings) -> int:
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=kernel.die_with_parent,  # noqa: PLW1509 - one system call, no lock
    )
    assert process.stdin is not None
    try:
        process.stdin.write(f"{settings.to_line()}\n".encode())
        process.stdin.flush()
        return process.wait() or 1
    except (_Asked, BrokenPipeError):
        process.stdin.close()
        process.wait(_PATIENCE_S)
        return 0
    finally:
        process.kill()
        process.wait()


def _note(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a handler's signature
    raise _Asked


if __name__ == "__main__":
    sys.exit(main())
