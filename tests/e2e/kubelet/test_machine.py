"""Nodes offer what the machine has, and no more."""

import os
from datetime import UTC, datetime

from tests.e2e.kubelet.__main__ import command
from tests.e2e.kubelet.machine import lease, node, node_status, share_of
from tests.e2e.kubelet.service import Settings
from workloads.lab.capability import Capability

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_nodes_share_the_machine():
    whole, half = share_of(1, 8), share_of(2, 8)
    assert whole.cpu_millis == (os.cpu_count() or 1) * 1000
    assert (2 * half.cpu_millis, half.pods) == (whole.cpu_millis, 8)
    assert 0 < 2 * half.memory_mib <= whole.memory_mib


def test_a_node_is_ready_and_open_to_pods_that_tolerate_nothing():
    status = node_status("n", share_of(2, 3), NOON, NOON)["status"]
    assert {one["type"]: one["status"] for one in status["conditions"]}["Ready"] == "True"
    assert status["allocatable"]["pods"] == "3"
    made = node("n")
    assert made["metadata"]["labels"]["topolab.dev/kubelet"] == "process"
    assert [one["effect"] for one in made["spec"]["taints"]] == ["PreferNoSchedule"]


def test_a_lease_is_renewed_now():
    assert lease("n", NOON)["spec"]["renewTime"] == "2026-01-01T12:00:00.000000Z"


def test_settings_survive_their_line():
    settings = Settings(
        kubeconfig="/k",
        folder="/f",
        nodes=("a", "b"),
        pods_per_node=1,
        interpreter="/p",
        namespaces=True,
        run_as=(1, 2),
    )
    assert Settings.from_line(settings.to_line()) == settings


def test_the_service_stays_in_the_network_where_the_api_server_is():
    words = command(Capability("user", True, ""))
    assert "--net" not in words
    assert {"--user", "--map-root-user", "--mount", "--pid", "--kill-child"} <= set(words)
    assert command(Capability(None, False, ""))[0] == "/usr/bin/env"
