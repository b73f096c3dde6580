import socket
import sys
from pathlib import Path

import pytest

from tests.workloads.lab.scene import LOOPBACK, arm, log, pod
from workloads.lab.events import Event, Noted
from workloads.lab.loopback import free_port, loopback_interface, on_loopback, rewrite

PATHS = {"/config": "/s/root/config", "/opt/topolab": "/s/root/opt/topolab", "/tmp": "/s/root/tmp"}


def _rendezvous(port: int) -> list[dict[str, str]]:
    return [
        {"name": "PET_MASTER_ADDR", "value": "p-0.job"},
        {"name": "PET_MASTER_PORT", "value": str(port)},
        {"name": "GLOO_SOCKET_IFNAME", "value": "eth0"},
    ]


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("/config/config.json", "/s/root/config/config.json"),
        ("--config=/config/x", "--config=/s/root/config/x"),
        ("file:///config", "file:///s/root/config"),
        ("/opt/topolab/code:/opt/other:/tmp", "/s/root/opt/topolab/code:/opt/other:/s/root/tmp"),
        ("/configuration", "/configuration"),
        ("/home/config", "/home/config"),
        ("a/config", "a/config"),
        ("https://config/x", "https://config/x"),
        ("/tmp/venv/bin", "/tmp/venv/bin"),
    ],
)
def test_paths_of_the_pod_are_moved_and_no_others(text: str, moved: str) -> None:
    assert rewrite(text, PATHS, stay=("/tmp/venv",)) == moved


def test_pods_meet_on_the_loopback_and_their_manifests_stay_as_they_were() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    original = pod("p-0", container={"env": _rendezvous(free)})
    changed, note = on_loopback([original])
    values = {entry["name"]: entry["value"] for entry in changed[0]["spec"]["containers"][0]["env"]}
    assert values == {
        "PET_MASTER_ADDR": "127.0.0.1",
        "PET_MASTER_PORT": str(free),
        "GLOO_SOCKET_IFNAME": loopback_interface(),
    }
    assert note is None
    assert original["spec"]["containers"][0]["env"] == _rendezvous(free)


def test_the_loopback_has_another_name_on_a_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert loopback_interface() == "lo0"


def test_a_taken_port_is_replaced_for_all_pods_alike_and_the_user_is_told(tmp_path: Path) -> None:
    script = "import os; print(os.environ['PET_MASTER_PORT'])"
    events: list[Event] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        assert free_port(taken) != taken
        pods = [pod(f"p-{index}", script, container={"env": _rendezvous(taken)}) for index in range(2)]
        outcome = arm(pods, tmp_path, LOOPBACK, events=events)
    used = {log(outcome, index).strip() for index in range(2)}
    assert len(used) == 1
    assert used != {str(taken)}
    told = [event.sentence for event in events if isinstance(event, Noted)]
    assert told == [f"port {taken} is taken on this machine; the pods meet on port {used.pop()}"]
