"""`topo preflight` as a user's shell calls it, before the fake account: whole, in time, and with `--reserve`."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml

from tests.e2e.children import Children
from tests.e2e.cloud.inventory import inventory
from tests.e2e.cloud.start import start_cloud
from tests.e2e.site import REGION, Site

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
LIMIT_S = 20
STACK = (ROOT / "Pulumi.dev.yaml").read_text()
OF_AWS = {
    "identity", "region", "zone", "stack's name", "instance type", "quota of GPU vCPUs", "quota of system vCPUs",
    "price", "VPCs", "Elastic IPs", "addresses", "records bucket", "Kubernetes", "GPU node image",
}  # fmt: skip
"""Rows that this account can answer; registries and tools are those of whoever runs the test."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("preflight")
    with Children(folder / "logs") as children:
        url = start_cloud(folder, children)
        yield Site(folder=folder, tools=folder, kubeconfig=folder / "kubeconfig", aws_endpoint=url, charts=folder)


@pytest.fixture
def tools(site, tmp_path):
    """A user's programs, as far as a preflight asks them."""
    caller = client(site, "sts").get_caller_identity()
    identity = json.dumps({"Account": caller["Account"], "Arn": caller["Arn"]})
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in {
        "aws": f"[ $1 = sts ] && echo '{identity}' || echo aws-cli/2.31.0",
        "pulumi": "echo v3.260.0",
        "kubectl": "echo 'Client Version: v1.35.0'",
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def topo(site, tools, tmp_path):
    (tmp_path / "Pulumi.yaml").write_text("name: topolab\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK)

    def call(*words: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "workloads", *words],
            cwd=tmp_path,
            env={**site.environment(), "PYTHONPATH": str(ROOT), "PATH": f"{tools}:/usr/bin:/bin"},
            input=answer,
            capture_output=True,
            text=True,
            check=False,
        )

    return call


def client(site: Site, service: str) -> Any:
    make: Any = boto3.client
    keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
    return make(service, endpoint_url=site.aws_endpoint, region_name=REGION, **keys)


def test_an_account_that_has_what_the_stack_needs_is_green_within_the_limit(topo):
    began = time.monotonic()
    called = topo("preflight", "dev", "--json")
    took = time.monotonic() - began
    assert called.stdout, called.stderr
    colours = {row["check"]: (row["colour"], row["sentence"]) for row in json.loads(called.stdout)["checks"]}
    assert {check: colours[check] for check in OF_AWS if colours[check][0] != "green"} == {}
    assert took < LIMIT_S


def test_without_a_stack_the_account_says_what_it_can_run(topo):
    called = topo("preflight", "--json")
    document = json.loads(called.stdout)
    offers = {one["topology"]: one for one in document["offers"]}
    assert called.returncode == 0
    assert offers["g6e8xl-2x1-efa1"]["runs"] is True
    assert offers["g6e8xl-2x1-efa1"]["usd_per_hour"] == pytest.approx(9.05712)
    assert offers["g6e8xl-16x1-efa1"]["free_vcpus"] == 1152


def test_a_reservation_is_made_written_down_and_then_found_by_the_next_preflight(topo, site, tmp_path):
    called = topo("preflight", "dev", "--reserve", answer="y\n")
    assert called.returncode == 0, called.stderr
    (reservation,) = inventory(site.aws_endpoint)["ec2:capacity-reservation"]
    written = yaml.safe_load((tmp_path / "Pulumi.dev.yaml").read_text())["config"]["topolab:platform"]
    assert written["capacity"] == {"mode": "reservation", "id": reservation}
    rows = {row["check"]: row["colour"] for row in json.loads(topo("preflight", "dev", "--json").stdout)["checks"]}
    assert (rows["reservation"], rows["reservation's end"]) == ("green", "green")
    left = json.loads(topo("verify-destroyed", "dev", "--json").stdout)["left"]
    assert [(one["kind"], one["id"], one["usdPerHour"]) for one in left] == [
        ("capacity reservation", reservation, pytest.approx(9.05712))
    ]
    client(site, "ec2").cancel_capacity_reservation(CapacityReservationId=reservation)
    assert json.loads(topo("verify-destroyed", "dev", "--json").stdout)["left"] == []
