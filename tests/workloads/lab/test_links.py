import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.source import ROOT
from tests.workloads.lab.scene import USER, WITH_NAMESPACES, arm, log, pod, rights_name
from workloads.lab.capability import Capability
from workloads.lab.events import Event, LinksCounted
from workloads.lab.links import JUMBO_MTU, burst_bytes, hosts_file, read_interfaces

NET_DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier
    lo:     100       1    0    0    0     0          0         0      100       1    0    0    0     0       0
  eth0: 7590612    5012    0    0    0     0          0         0    36786     557    0    0    0     0       0
"""

RECEIVE = """
import socket, time
with socket.create_server(("0.0.0.0", 5001)) as server:
    connection, _ = server.accept()
    got, began = len(connection.recv(1)), time.monotonic()
    while chunk := connection.recv(1 << 20):
        got += len(chunk)
    print("RATE", got * 8 / (time.monotonic() - began), "BYTES", got)
"""

SEND = """
import socket, sys, time
while True:
    try:
        connection = socket.create_connection(("receiver.job", 5001), timeout=20)
        break
    except ConnectionRefusedError:
        time.sleep(0.02)
for _ in range(int(sys.argv[1])):
    connection.sendall(bytes(1 << 16))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
"""


def test_the_burst_follows_both_measured_settings() -> None:
    assert burst_bytes(200e6) == pytest.approx(256 * 1024, rel=0.05)
    assert burst_bytes(25e9) == 4 * 1024**2


@given(st.floats(min_value=1e5, max_value=4e11))
def test_a_burst_holds_a_frame_and_never_shrinks_with_the_rate(rate: float) -> None:
    assert burst_bytes(rate) > JUMBO_MTU
    assert burst_bytes(rate) <= burst_bytes(rate * 2)


def test_bytes_of_each_interface_are_read_from_the_kernels_table() -> None:
    interfaces = read_interfaces(NET_DEV)
    assert (interfaces["eth0"].received, interfaces["eth0"].sent) == (7590612, 36786)
    assert interfaces["lo"].sent == 100


def test_a_hosts_file_names_peers_as_the_clusters_dns_does_and_the_pod_itself_by_its_bare_name() -> None:
    first, second = pod("p-0"), pod("p-1")
    text = hosts_file(first, [(first, "10.90.0.1"), (second, "10.90.0.2")])
    names = "{0}.job {0}.job.topolab {0}.job.topolab.svc {0}.job.topolab.svc.cluster.local"
    assert text.splitlines() == [
        "127.0.0.1 localhost",
        f"10.90.0.1 {names.format('p-0')} p-0",
        f"10.90.0.2 {names.format('p-1')}",
    ]


def test_a_pod_without_a_subdomain_is_known_to_itself_alone() -> None:
    alone, other = pod("p-0"), pod("p-1")
    del alone["spec"]["subdomain"]
    peers = [(alone, "10.90.0.1"), (other, "10.90.0.2")]
    assert "10.90.0.1 p-0" in hosts_file(alone, peers)
    assert "10.90.0.1" not in hosts_file(other, peers)


@pytest.mark.lab
@pytest.mark.parametrize("capability", WITH_NAMESPACES, ids=rights_name)
@pytest.mark.parametrize("rate", [20e6, 200e6])
def test_tcp_between_two_pods_runs_at_the_dialled_rate(tmp_path: Path, capability: Capability, rate: float) -> None:
    blocks = int(rate / 8 * 1.5 / 65536)
    outcome = arm([pod("receiver", RECEIVE), pod("sender", SEND, str(blocks))], tmp_path, capability, rate=rate)
    assert outcome.failure is None
    _, measured, _, received = log(outcome).split()
    # tbf counts headers too (at most 54 in each frame), and one burst (10 ms of 1.5 s) passes at once.
    assert float(measured) == pytest.approx(rate, rel=0.03)
    assert int(received) == blocks * 65536
    assert outcome.shaping == "shaped"
    receiver, sender = (pod.bytes for pod in outcome.pods)
    assert sender is not None
    assert receiver is not None
    assert (sender.sent, sender.received) == (receiver.received, receiver.sent)
    # Headers and acknowledgements are all that is counted beside the payload.
    assert int(received) < sender.sent < int(received) * 1.02


@pytest.mark.lab
def test_a_pod_may_come_where_another_left() -> None:
    script = """
from workloads.lab.links import Network
with Network() as network:
    links = [network.join("a", None), network.join("b", None)]
    network.leave("a")
    links.append(network.join("c", None))
    print(len({link.interface for link in links}), len({link.address for link in links}), *network.counters())
"""
    program = ["/usr/bin/env", f"PYTHONPATH={ROOT}", sys.executable, "-c", script]
    ran = subprocess.run(USER.command(program), capture_output=True, text=True, check=False)
    assert (ran.stdout.split(), ran.returncode) == (["3", "3", "b", "c"], 0), ran.stderr


@pytest.mark.lab
def test_three_senders_together_reach_a_pod_at_its_own_rate(tmp_path: Path) -> None:
    receive = """
import socket, threading, time
with socket.create_server(("0.0.0.0", 5001), backlog=8) as server:
    connections = [server.accept()[0] for _ in range(3)]
began, totals = time.monotonic(), []
def drain(connection):
    totals.append(sum(len(chunk) for chunk in iter(lambda: connection.recv(1 << 20), b"")))
threads = [threading.Thread(target=drain, args=(connection,)) for connection in connections]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sum(totals) * 8 / (time.monotonic() - began))
"""
    rate = 50e6
    senders = [pod(f"sender-{index}", SEND, "60") for index in range(3)]
    outcome = arm([pod("receiver", receive), *senders], tmp_path, USER, rate=rate)
    assert outcome.failure is None
    # Without the host's end shaped this would be up to 3 x; what waits in the queues at the start adds some.
    assert float(log(outcome)) < 1.25 * rate


@pytest.mark.lab
def test_pods_have_no_route_out_and_nothing_but_their_own_traffic_is_counted(tmp_path: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        script = """
import errno, os, socket, sys, time
for address in ("192.0.2.1", "127.0.0.1"):
    try:
        socket.create_connection((address, int(sys.argv[1])), timeout=5)
        print(address, "reached")
    except OSError as error:
        print(address, errno.errorcode[error.errno])
time.sleep(1.5)  # reports of multicast groups, were there any, would come within a second
print(sorted(os.listdir("/sys/class/net")))
"""
        events: list[Event] = []
        outcome = arm([pod("p-0", script, str(port)), pod("p-1")], tmp_path, USER, rate=1e8, events=events)
    assert outcome.failure is None
    assert log(outcome).splitlines() == ["192.0.2.1 ENETUNREACH", "127.0.0.1 ECONNREFUSED", "['eth0', 'lo']"]
    counted = [event for event in events if isinstance(event, LinksCounted)]
    assert {count.sent + count.received for count in counted[-1].pods.values()} == {0}
