"""What NCCL's own log says about the paths it took, over the forms of NCCL 2.18 to 2.30.

Only `Channel ... via ...` lines are evidence of a transport. That a plugin was loaded, a network chosen or
`GDR 1` printed beside `Connected all rings` says what was possible, not what was used: the last is printed
even by a communicator whose plugin has just switched GPUDirect off.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

Direction = Literal["send", "receive"]
Gdr = Literal["used", "not used", "unknown"]

_MARKS = ("NCCL INFO", "NCCL WARN", "NCCL TRACE")
_ROUTE_SUFFIXES = ("GDRDMA", "GDRDMA(PCI)", "(PCI)", "Shared")


@dataclass(frozen=True, order=True)
class Process:
    """One process that wrote to the log, as its line prefix names it."""

    host: str
    pid: int
    device: str


@dataclass(frozen=True)
class Communicator:
    """One communicator as one process saw it; None where the log doesn't say."""

    process: Process
    address: str
    rank: int
    ranks: int
    nodes: int | None = None
    local_ranks: int | None = None
    channels: int | None = None


@dataclass(frozen=True)
class Pair:
    """One directed pair of ranks (communicator-local numbers) and the path that its channels took."""

    process: Process | None
    from_rank: int
    to_rank: int
    transport: str
    """`P2P`, `P2P+read`, `SHM`, `NET/<plugin>` or `NET/<plugin>+GDRDMA`: the words of `LinkExpectation.expected`."""
    detail: str
    """The log's own words, e.g. `NET/Libfabric/0/GDRDMA`."""
    direction: Direction | None
    """Which end wrote the line; P2P and SHM lines name none."""
    channels: int
    communicator_ranks: tuple[int, ...]
    """Sizes of the communicators that the pair may belong to: one where the log is clear, none where it
    announces no communicator at all."""


@dataclass(frozen=True)
class NcclLog:
    """One log, or several ranks' logs in one file. None: the log doesn't say."""

    version: str | None
    plugin: str | None
    network: str | None
    nics_found: int | None
    """EFA devices that the plugin found; the fewest, where several processes report."""
    nics_by_process: tuple[tuple[Process, int], ...]
    gdr_statements: tuple[str, ...]
    """What the log says about GPUDirect being off, in its own words."""
    communicators: tuple[Communicator, ...]
    pairs: tuple[Pair, ...]
    damaged_lines: int
    """Lines that were cut or overwritten: counted, never used as evidence."""

    @property
    def gdr(self) -> Gdr:
        """Whether data went by GPUDirect RDMA: only the suffix of a NET path proves it."""
        over_network = [pair.transport for pair in self.pairs if pair.transport.startswith("NET/")]
        if any(transport.endswith("+GDRDMA") for transport in over_network):
            return "used"
        return "not used" if over_network or self.gdr_statements else "unknown"


def parse(text_or_lines: str | Iterable[str]) -> NcclLog:
    """Read a log; lines that NCCL didn't write, and lines that were cut, never raise."""
    lines = text_or_lines.splitlines() if isinstance(text_or_lines, str) else text_or_lines
    reader = _Reader()
    for line in lines:
        if "NCCL" in line or " via " in line:
            for message in _messages(line, reader.processes):
                reader.take(message)
    return reader.result()


def describe(log: NcclLog) -> list[dict[str, str | int]]:
    """The rows of `topo nccl`: one per directed pair, transport and path, with its channel count."""
    return [
        {
            "process": "" if pair.process is None else f"{pair.process.host}:{pair.process.pid}",
            "from": pair.from_rank,
            "to": pair.to_rank,
            "transport": pair.transport,
            "path": pair.detail,
            "direction": pair.direction or "",
            "channels": pair.channels,
            "communicator": "/".join(str(size) for size in pair.communicator_ranks),
        }
        for pair in log.pairs
    ]


@dataclass(frozen=True)
class _Message:
    process: Process | None
    thread: str
    text: str
    cut: bool
    """Another process's line follows on the same line, so the end of this one may be missing."""


@dataclass
class _Reader:
    processes: set[Process] = field(default_factory=set)
    version: str | None = None
    plugin: str | None = None
    network: str | None = None
    nics: dict[Process | None, int] = field(default_factory=dict)
    gdr_statements: list[str] = field(default_factory=list)
    communicators: dict[tuple[Process, str], Communicator] = field(default_factory=dict)
    announced_by_thread: dict[tuple[Process, str], str] = field(default_factory=dict)
    channels: dict[Pair, set[str]] = field(default_factory=dict)
    damaged: int = 0

    def take(self, message: _Message) -> None:
        words = message.text.split()
        if not words:
            return
        try:
            self._take_words(message, words)
        except (IndexError, KeyError, ValueError):
            # A run of hours must not end on a line that was torn in a way not yet seen.
            self.damaged += 1

    def _take_words(self, message: _Message, words: list[str]) -> None:
        if words[0] in ("Channel", "Ring") and "->" in words:
            self._take_channel(message, words)
        elif "comm" in words:
            self._take_communicator(message, words)
        elif words[1:3] == ["coll", "channels,"]:
            self._take_channel_count(message, words[0])
        else:
            self._take_setup(message, words)

    def _take_channel(self, message: _Message, words: list[str]) -> None:
        hop = None if message.cut else _hop(message.text, words)
        if hop is None:
            self.damaged += 1
            return
        pair = replace(hop, process=message.process)
        pair = replace(pair, communicator_ranks=self._possible_communicators(message, pair))
        self.channels.setdefault(pair, set()).add(words[1].partition("/")[0])

    def _possible_communicators(self, message: _Message, pair: Pair) -> tuple[int, ...]:
        """Since 2.22 channels are connected lazily by threads of their own, so the thread that printed a
        channel line rarely is the one that announced the communicator: all that fit are kept."""
        own_rank = pair.to_rank if pair.direction == "receive" else pair.from_rank
        return tuple(
            sorted(
                {
                    each.ranks
                    for (process, _), each in self.communicators.items()
                    if process == message.process
                    and each.rank == own_rank
                    and max(pair.from_rank, pair.to_rank) < each.ranks
                }
            )
        )

    def _take_communicator(self, message: _Message, words: list[str]) -> None:
        values = _values(words)
        rank, ranks = _number(values.get("rank")), _number(values.get("nranks"))
        if message.process is None or rank is None or ranks is None or rank >= ranks:
            return
        key = (message.process, values["comm"])
        known = self.communicators.get(key)
        if known is None or (known.rank, known.ranks) != (rank, ranks):
            known = Communicator(message.process, values["comm"], rank, ranks)
        nodes, local_ranks = _number(values.get("nnodes")), _number(values.get("localranks"))
        self.communicators[key] = replace(
            known,
            nodes=known.nodes if nodes is None else nodes,
            local_ranks=known.local_ranks if local_ranks is None else local_ranks,
        )
        self.announced_by_thread[message.process, message.thread] = values["comm"]

    def _take_channel_count(self, message: _Message, count: str) -> None:
        if message.process is None or _number(count) is None:
            return
        address = self.announced_by_thread.get((message.process, message.thread))
        if address is not None:
            key = (message.process, address)
            self.communicators[key] = replace(self.communicators[key], channels=int(count))

    def _take_setup(self, message: _Message, words: list[str]) -> None:
        text = message.text
        if words[:2] == ["NCCL", "version"] and len(words) > 2:
            self.version = self.version or words[2]
        elif words[:2] == ["Using", "network"]:
            self.network = _plugin_name(text.partition("network")[2].strip())
        elif words[:2] == ["NET/OFI", "Initializing"]:
            self.plugin = " ".join(words[2:])
        elif "Loaded net plugin" in text and self.plugin is None:
            self.plugin = text.partition("Loaded net plugin")[2].strip()
        elif words[-1] == "nics)" and len(words) > 1 and _number(words[-2]) is not None:
            self.nics[message.process] = int(words[-2])
        elif _says_gdr_is_off(text) and text not in self.gdr_statements:
            self.gdr_statements.append(text)

    def result(self) -> NcclLog:
        return NcclLog(
            version=self.version,
            plugin=self.plugin,
            network=self.network,
            nics_found=min(self.nics.values(), default=None),
            nics_by_process=tuple((process, n) for process, n in self.nics.items() if process is not None),
            gdr_statements=tuple(self.gdr_statements),
            communicators=tuple(self.communicators.values()),
            pairs=tuple(replace(pair, channels=len(numbers)) for pair, numbers in self.channels.items()),
            damaged_lines=self.damaged,
        )


def _messages(line: str, processes: set[Process]) -> Iterator[_Message]:
    """Split one line of text into what each process wrote on it: `host:pid:tid [device] NCCL INFO text`.

    Whatever stands before the prefix (time stamps, torchrun's or kubectl's rank names) is left out.
    """
    pieces = _split_at_marks(line)
    if len(pieces) == 1:
        yield _Message(None, "", line.strip(), cut=False)
        return
    for index in range(1, len(pieces)):
        process, thread = _process(pieces[index - 1].split(), processes)
        last = index == len(pieces) - 1
        text = pieces[index] if last else " ".join(pieces[index].split()[:-2])
        yield _Message(process, thread, text.strip(), cut=not last)


def _split_at_marks(line: str) -> list[str]:
    for mark in _MARKS[1:]:
        line = line.replace(mark, _MARKS[0])
    return line.split(_MARKS[0])


def _process(head: list[str], processes: set[Process]) -> tuple[Process | None, str]:
    """The process and thread that the end of `head` names; None where the prefix is damaged."""
    if len(head) < 2 or not (head[-1].startswith("[") and head[-1].endswith("]")):
        return None, ""
    host, _, numbers = head[-2].rpartition(":")
    host, _, pid = host.rpartition(":")
    if not (host and pid.isdecimal() and numbers.isdecimal()):
        return None, ""
    process = Process(host.rpartition(":")[2], int(pid), head[-1][1:-1])
    # The rest of a line that was cut may stick to the next line's host name: `3[3llama-0:195:1161`.
    for known in processes:
        if process.host.endswith(known.host) and replace(process, host=known.host) == known:
            return known, numbers
    processes.add(process)
    return process, numbers


def _hop(text: str, words: list[str]) -> Pair | None:
    """`Channel 00[/0] : 0[0] -> 1[0] [send] via NET/...`; None where it isn't whole."""
    arrow = words.index("->")
    ends = _rank(words[arrow - 1]), _rank(words[arrow + 1] if arrow + 1 < len(words) else "")
    # Before 2.18 the communicator followed the path: `via P2P/IPC/read comm 0x7f3c nRanks 08`.
    detail = text.partition(" via ")[2].partition(" comm ")[0].strip()
    transport = _transport(detail)
    if ends[0] is None or ends[1] is None or transport is None:
        return None
    directions: dict[str, Direction] = {"[send]": "send", "[receive]": "receive"}
    direction = next((directions[word] for word in words if word in directions), None)
    return Pair(None, ends[0], ends[1], transport, detail, direction, 0, ())


def _rank(word: str) -> int | None:
    """`3[0]` is rank 3 on device 0 (or, in older versions, on the bus id in the brackets)."""
    number, bracket, device = word.partition("[")
    whole = number.isdecimal() and (not bracket or device.endswith("]"))
    return int(number) if whole else None


def _transport(detail: str) -> str | None:
    parts = detail.split("/")
    if parts[0] == "P2P":
        return "P2P+read" if "read" in parts[1:] else "P2P"
    if parts[0] == "SHM":
        return "SHM"
    if parts[0] != "NET" or len(parts) < 3 or not parts[2][:1].isdecimal():
        return None
    suffixes = parts[3:]
    if any(_is_cut(suffix) for suffix in suffixes):
        return None
    name = f"NET/{_plugin_name(parts[1])}"
    return f"{name}+GDRDMA" if any(suffix.startswith("GDRDMA") for suffix in suffixes) else name


def _is_cut(suffix: str) -> bool:
    """A beginning of a known suffix that is none itself: the line ended in the middle of it."""
    return suffix not in _ROUTE_SUFFIXES and any(known.startswith(suffix) for known in _ROUTE_SUFFIXES)


def _plugin_name(name: str) -> str:
    """aws-ofi-nccl called its network `AWS Libfabric` until August 2024, `Libfabric` since."""
    return "Libfabric" if name == "AWS Libfabric" else name


def _values(words: list[str]) -> dict[str, str]:
    """`comm 0x55 rank 0 nRanks 4`, from `comm` on, as a mapping with keys in lower case: releases spell
    nranks and nRanks."""
    tail = words[words.index("comm") :]
    values: dict[str, str] = {}
    for key, value in pairwise(tail):
        values.setdefault(key.lower(), value)
    return values


def _number(word: str | None) -> int | None:
    return int(word) if word is not None and word.isdecimal() else None


def _says_gdr_is_off(text: str) -> bool:
    lowered = text.lower()
    about_gdr = "gdr" in lowered or "gpu direct rdma" in lowered
    return about_gdr and ("disab" in lowered or "not supported" in lowered)
