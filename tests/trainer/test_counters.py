"""Counters and connections as the kernel writes them down."""

from pathlib import Path

import pytest

from trainer import counters
from trainer.counters import efa_bytes, efa_devices, established, interface_bytes
from trainer.record import InterfaceBytes

pytestmark = pytest.mark.torch

NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo:  111       2    0    0    0     0          0         0      222       2    0    0    0     0       0          0
  eth0: 333 4 0 0 0 0 0 0 444 5 0 0 0 0 0 0
"""

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
TCP = (
    HEADER
    + "   0: 01005A0A:1F90 02005A0A:C001 01 00000000:00000000 00:00000000 00000000 0 0 777 1\n"
    + "   1: 01005A0A:1F91 02005A0A:C002 01 00000000:00000000 00:00000000 00000000 0 0 888 1\n"
    + "   2: 0100007F:7148 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 777 1\n"
)
TCP6 = (
    HEADER
    + "   0: 0000000000000000FFFF000001005A0A:1F90 0000000000000000FFFF000002005A0A:C001 01 0:0 00:0 0 0 0 777 1\n"
    + "   1: 000000FD000000000000000001000000:0050 000000FD000000000000000002000000:0051 01 0:0 00:0 0 0 0 777 1\n"
)


def test_bytes_of_an_interface_are_its_first_and_ninth_number() -> None:
    assert interface_bytes(NET_DEV) == (
        InterfaceBytes(name="lo", kind="interface", sent=222, received=111),
        InterfaceBytes(name="eth0", kind="interface", sent=444, received=333),
    )


def test_a_sample_of_this_machine_holds_lo() -> None:
    sample = counters.sample(7)
    assert sample.after_step == 7
    assert "lo" in {interface.name for interface in sample.interfaces}
    assert "127.0.0.1" in counters.addresses()


def test_only_own_established_sockets_are_connections() -> None:
    (connection,) = established(TCP, frozenset({"777"}))
    assert (connection.local_address, connection.remote_address) == ("10.90.0.1:8080", "10.90.0.2:49153")
    assert list(established(TCP, frozenset())) == []


def test_addresses_of_both_families_are_told_in_their_own_form() -> None:
    mapped, six = established(TCP6, frozenset({"777"}))
    assert mapped.local_address == "10.90.0.1:8080"
    assert six.local_address == "[fd00::1]:80"


def _device(root: Path, number: int, *, mounted: bool) -> None:
    device = root / "sys" / f"rdmap{number}s0"
    (device / "device/infiniband_verbs" / f"uverbs{number}").mkdir(parents=True)
    values = device / "ports/1/hw_counters"
    values.mkdir(parents=True)
    (values / "tx_bytes").write_text(f"{1000 + number}\n")
    (values / "rx_bytes").write_text(f"{2000 + number}\n")
    (root / "dev").mkdir(exist_ok=True)
    if mounted:
        (root / "dev" / f"uverbs{number}").touch()


def test_only_the_efa_devices_that_the_pod_was_given_count(tmp_path: Path) -> None:
    for number, mounted in enumerate((True, False, True)):
        _device(tmp_path, number, mounted=mounted)
    assert efa_devices(tmp_path / "sys", tmp_path / "dev") == ("rdmap0s0", "rdmap2s0")
    assert efa_bytes(tmp_path / "sys", tmp_path / "dev") == (
        InterfaceBytes(name="rdmap0s0", kind="efa", sent=1000, received=2000),
        InterfaceBytes(name="rdmap2s0", kind="efa", sent=1002, received=2002),
    )


@pytest.mark.parametrize("fault", ["missing", "unreadable", "no number"])
def test_a_device_whose_counters_can_t_be_read_is_absent_instead_of_silent(tmp_path: Path, fault: str) -> None:
    for number in (0, 1):
        _device(tmp_path, number, mounted=True)
    counter = tmp_path / "sys/rdmap0s0/ports/1/hw_counters/tx_bytes"
    counter.unlink()
    if fault == "unreadable":
        counter.mkdir()
    elif fault == "no number":
        counter.write_text("\n")
    assert [each.name for each in efa_bytes(tmp_path / "sys", tmp_path / "dev")] == ["rdmap1s0"]
    assert efa_devices(tmp_path / "sys", tmp_path / "dev") == ("rdmap0s0", "rdmap1s0")


def test_a_machine_without_infiniband_has_no_efa_device(tmp_path: Path) -> None:
    assert efa_devices(tmp_path / "none", tmp_path) == ()
