"""`python -m tests.e2e.cluster`: a cluster for a person; prints the path of its kubeconfig and waits for Ctrl-C."""

import argparse
import signal
import time
from pathlib import Path

from tests.e2e.charts.folder import assemble_charts
from tests.e2e.children import Children
from tests.e2e.cluster.cluster import start_cluster
from tests.e2e.cluster.trainer import install_trainer
from tests.e2e.own_folder import own_folder
from tests.e2e.site import Site
from tests.e2e.tools import module_path, tool_folder
from workloads.catalogue.instances import INSTANCE_TYPES


def main() -> None:
    """Start what was asked for, and wait."""
    given = _arguments()
    # As on Ctrl-C: what was started ends in order, and the folder goes.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with own_folder("topolab-cluster-") as folder:
        try:
            _run(folder, given)
        except KeyboardInterrupt:
            print("ended")


def _run(folder: Path, given: argparse.Namespace) -> None:
    tools = tool_folder()
    site = Site(
        folder=folder,
        tools=tools,
        kubeconfig=folder / "kubeconfig",
        aws_endpoint="",
        charts=assemble_charts(folder / "charts", module_path),
    )
    began = time.monotonic()
    with Children(site.logs) as children, start_cluster(site, children, system_nodes=given.system_nodes) as cluster:
        if given.trainer:
            install_trainer(site)
        for instance_type, count in given.gpu_nodes:
            cluster.add_fake_gpu_nodes(instance_type, count, zone=given.zone)
        used = sum(cluster.resident_mib().values())
        print(f"ready after {time.monotonic() - began:.1f} s, {used:.0f} MiB; logs in {site.logs}; Ctrl-C ends it")
        print(site.kubeconfig, flush=True)
        signal.pause()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.cluster", description=__doc__)
    parser.add_argument("--trainer", action="store_true", help="install Kubeflow Trainer and JobSet by helm")
    parser.add_argument("--system-nodes", type=int, default=2, help="nodes that run controllers (%(default)s)")
    parser.add_argument(
        "--gpu-nodes", type=_gpu_nodes, action="append", default=[], metavar="TYPE=COUNT",
        help="fake GPU nodes of an instance type, as g6e.12xlarge=4; may be given again",
    )  # fmt: skip
    parser.add_argument("--zone", default="us-east-1b", help="of the GPU nodes (%(default)s)")
    return parser.parse_args()


def _gpu_nodes(text: str) -> tuple[str, int]:
    instance_type, _, count = text.partition("=")
    known = [one.name for one in INSTANCE_TYPES]
    if instance_type not in known or not count.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} isn't TYPE=COUNT with a type of {', '.join(known)}")
    return instance_type, int(count)


if __name__ == "__main__":
    main()
