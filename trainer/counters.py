"""What the kernel counted: bytes by device, and this process's connections.

Bytes of interfaces come from /proc/self/net/dev, because in a fresh network namespace /sys/class/net still
shows the host's interfaces and counters.
"""

import ipaddress
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from trainer.record import Connection, CounterSample, InterfaceBytes

NET_DEV = Path("/proc/self/net/dev")
INFINIBAND = Path("/sys/class/infiniband")
DEVICES = Path("/dev/infiniband")
TCP_TABLES = (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6"))
OPEN_FILES = Path("/proc/self/fd")
ESTABLISHED = "01"
"""The kernel's number of the TCP state (include/net/tcp_states.h)."""


def sample(after_step: int) -> CounterSample:
    """All byte counters that this process can see, now."""
    interfaces = (*interface_bytes(NET_DEV.read_text()), *efa_bytes(INFINIBAND, DEVICES))
    return CounterSample(after_step=after_step, unix_s=time.time(), interfaces=interfaces)


def interface_bytes(table: str) -> tuple[InterfaceBytes, ...]:
    """The rows of a /proc/net/dev table: field 1 is bytes received, field 9 bytes sent."""
    rows = (line.partition(":") for line in table.splitlines()[2:])
    return tuple(
        InterfaceBytes(
            name=name.strip(),
            kind="interface",
            sent=int(fields.split()[8]),
            received=int(fields.split()[0]),
        )
        for name, _, fields in rows
    )


def efa_devices(infiniband: Path = INFINIBAND, devices: Path = DEVICES) -> tuple[str, ...]:
    """EFA devices that this pod may open.

    /sys shows all devices of the node to every pod; the device plugin mounts only the pod's own
    /dev/infiniband/uverbs*.
    """
    if not infiniband.is_dir():
        return ()
    return tuple(
        device.name
        for device in sorted(infiniband.iterdir())
        if any((devices / verbs.name).exists() for verbs in (device / "device/infiniband_verbs").glob("*"))
    )


def efa_bytes(infiniband: Path, devices: Path) -> tuple[InterfaceBytes, ...]:
    """Bytes of the pod's EFA devices; tx_bytes and rx_bytes count RDMA reads and writes of both ends too.

    A device whose counters can't be read is left out: 0 would be evidence that nothing was sent.
    """
    rows = (
        (name, _hardware_counter(infiniband / name, "tx_bytes"), _hardware_counter(infiniband / name, "rx_bytes"))
        for name in efa_devices(infiniband, devices)
    )
    return tuple(
        InterfaceBytes(name=name, kind="efa", sent=sent, received=received)
        for name, sent, received in rows
        if sent is not None and received is not None
    )


def connections(process: int | None = None) -> tuple[Connection, ...]:
    """Established TCP connections of this process, or of another one of this pod, addresses as `host:port`."""
    own = _sockets_of(OPEN_FILES if process is None else Path(f"/proc/{process}/fd"))
    found = [c for table in TCP_TABLES if table.exists() for c in established(table.read_text(), own)]
    return tuple(sorted(set(found), key=lambda c: (c.local_address, c.remote_address)))


def established(table: str, sockets: frozenset[str]) -> Iterator[Connection]:
    """The rows of a /proc/net/tcp or tcp6 table that are established and whose inode is among `sockets`."""
    for line in table.splitlines()[1:]:
        fields = line.split()
        if fields[3] == ESTABLISHED and fields[9] in sockets:
            yield Connection(local_address=_endpoint(fields[1]), remote_address=_endpoint(fields[2]))


def addresses() -> tuple[str, ...]:
    """IP addresses of this pod's interfaces, lo included."""
    families = [entry for entries in psutil.net_if_addrs().values() for entry in entries]
    texts = (entry.address.partition("%")[0] for entry in families)
    return tuple(sorted({text for text in texts if _is_ip(text)}))


def _hardware_counter(device: Path, name: str) -> int | None:
    """Summed over the device's ports; None where a port has no such counter, or it can't be read."""
    files = [port / "hw_counters" / name for port in device.glob("ports/*")]
    try:
        return sum(int(file.read_text()) for file in files) if files else None
    except (OSError, ValueError):
        return None


def _sockets_of(open_files: Path) -> frozenset[str]:
    inodes = set()
    for descriptor in open_files.iterdir():
        try:
            target = str(descriptor.readlink())
        except OSError:
            continue  # closed since it was listed, like the descriptor of the listing itself
        if target.startswith("socket:["):
            inodes.add(target.removeprefix("socket:[").removesuffix("]"))
    return frozenset(inodes)


def _endpoint(field: str) -> str:
    """`0100007F:1F90` as `127.0.0.1:8080`: words of 32 bits in the machine's (little-endian) order."""
    host, _, port = field.partition(":")
    words = bytes.fromhex(host)
    packed = b"".join(words[i : i + 4][::-1] for i in range(0, len(words), 4))
    address = ipaddress.ip_address(packed)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    shown = mapped or address
    number = int(port, 16)
    return f"[{shown}]:{number}" if shown.version == 6 else f"{shown}:{number}"


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
