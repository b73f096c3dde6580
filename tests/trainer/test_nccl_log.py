"""What NCCL's log says, on the seeds' own lines and on the forms of other releases."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.nccl_log import NcclLog, describe, parse

FIXTURES = Path(__file__).parents[1] / "fixtures"


def fixture(name: str) -> NcclLog:
    return parse((FIXTURES / name).read_text())


def paths(log: NcclLog) -> list[tuple[int, int, str, int]]:
    return [(pair.from_rank, pair.to_rank, pair.transport, pair.channels) for pair in log.pairs]


def test_four_pods_on_one_p4d_spoke_libfabric_with_gpudirect_over_one_nic() -> None:
    log = fixture("nccl_p4d_4x1_efa.log")
    assert (log.version, log.plugin, log.network) == ("2.27.3+cuda12.9", "aws-ofi-nccl 1.16.2", "Libfabric")
    assert log.nics_found == 1
    assert log.gdr == "used"
    assert (3, 0, "NET/Libfabric+GDRDMA", 2) in paths(log)
    assert {(pair.from_rank, pair.to_rank) for pair in log.pairs} == {
        (3, 0), (0, 1), (2, 0), (0, 2), (1, 0), (0, 3),
    }  # fmt: skip


def test_a_communicator_states_its_size_its_nodes_and_its_channels() -> None:
    first, split = fixture("nccl_p4d_4x1_efa.log").communicators
    assert (first.rank, first.ranks, first.nodes, first.local_ranks, first.channels) == (0, 4, 4, 1, 2)
    assert split.address != first.address
    assert all(pair.communicator_ranks == (4,) for pair in fixture("nccl_p4d_4x1_efa.log").pairs)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nccl_g6e_shm.log", (2, 3, "SHM", 2)),
        ("nccl_g6e_socket.log", (3, 4, "NET/Socket", 2)),
        ("nccl_g6e_efa.log", (3, 4, "NET/Libfabric", 2)),
    ],
)
def test_the_g6e_lines_of_the_seeds_name_their_transport(name: str, expected: tuple[int, int, str, int]) -> None:
    assert paths(fixture(name)) == [expected]


def test_g6e_efa_without_the_suffix_is_not_gpudirect() -> None:
    assert fixture("nccl_g6e_efa.log").gdr == "not used"


PREFIX = "pod-0:194:1158 [2] NCCL INFO"


@pytest.mark.parametrize(
    ("ends", "detail", "transport"),
    [
        ("00 : 2[2] -> 3[3]", "SHM/direct/direct", "SHM"),
        ("00 : 2[2] -> 3[3]", "SHM/direct", "SHM"),
        ("00 : 2[2] -> 3[3]", "SHM/CE/direct", "SHM"),
        ("05/0 : 2[2] -> 3[3]", "P2P/CUMEM/read", "P2P+read"),
        ("05/0 : 2[2] -> 3[3]", "P2P/CUMEM/read/CE", "P2P+read"),
        ("05/0 : 2[2] -> 3[3]", "P2P/CUMEM", "P2P"),
        ("05/0 : 2[2] -> 3[3]", "P2P/IPC", "P2P"),
        ("05/0 : 2[2] -> 3[3]", "P2P/MNNVL", "P2P"),
        ("05/0 : 2[2] -> 3[3]", "P2P/direct pointer", "P2P"),
        ("05/0 : 2[2] -> 3[3]", "P2P/indirect/1[1]", "P2P"),
        ("00/0 : 2[2] -> 3[0] [send]", "NET/AWS Libfabric/1/GDRDMA", "NET/Libfabric+GDRDMA"),
        ("00/0 : 2[2] -> 3[0] [send]", "NET/AWS Libfabric/1", "NET/Libfabric"),
        ("00/0 : 2[2] -> 3[0] [receive]", "NET/Libfabric/1(6)/GDRDMA", "NET/Libfabric+GDRDMA"),
        ("00/0 : 2[2] -> 3[0] [send]", "NET/Libfabric/0/GDRDMA(PCI)/Shared", "NET/Libfabric+GDRDMA"),
        ("00/0 : 2[2] -> 3[0] [send]", "NET/Libfabric/0(1)/Shared", "NET/Libfabric"),
        ("00/0 : 2[2] -> 3[0] [send]", "NET/IB/3/GDRDMA", "NET/IB+GDRDMA"),
        ("00 : 2[2] -> 3[0] [send]", "NET/Socket/0", "NET/Socket"),
    ],
)
def test_every_form_of_a_channel_line_is_read(ends: str, detail: str, transport: str) -> None:
    (pair,) = parse(f"{PREFIX} Channel {ends} via {detail}\n").pairs
    assert (pair.from_rank, pair.to_rank, pair.transport, pair.detail) == (2, 3, transport, detail)
    assert pair.direction == ("send" if "[send]" in ends else "receive" if "[receive]" in ends else None)


def test_before_2_18_bus_ids_stood_in_the_brackets_and_the_communicator_after_the_path() -> None:
    line = "Channel 00/0 : 2[a01c0] -> 3[a01d0] via P2P/IPC/read comm 0x7f3c nRanks 08"
    (pair,) = parse(f"{PREFIX} {line}").pairs
    assert (pair.from_rank, pair.to_rank, pair.detail) == (2, 3, "P2P/IPC/read")


@pytest.mark.parametrize(
    "prefix",
    [
        "[2026-11-21 09:00:00] pod-0:194:1158 [2] NCCL INFO",
        "[default2]:pod-0:194:1158 [2] NCCL INFO",
        "[1,2]<stdout>:pod-0:194:1158 [2] NCCL INFO",
        "2026-11-21T09:00:00.123Z pod-0:194:1158 [2] NCCL INFO",
    ],
)
def test_what_launchers_write_before_the_prefix_is_left_out(prefix: str) -> None:
    (pair,) = parse(f"{prefix} Channel 00 : 2[2] -> 3[3] via SHM/direct/direct").pairs
    assert pair.process is not None
    assert (pair.process.host, pair.process.pid, pair.process.device) == ("pod-0", 194, "2")


def test_connected_all_rings_with_gdr_1_proves_nothing() -> None:
    log = parse(
        f"{PREFIX} NET/OFI Could not disable CUDA API usage for HMEM, disabling GDR\n"
        f"{PREFIX} Connected all rings, use ring PXN 0 GDR 1\n"
    )
    assert log.pairs == ()
    assert log.gdr == "not used"
    assert log.gdr_statements == ("NET/OFI Could not disable CUDA API usage for HMEM, disabling GDR",)


def test_a_loaded_plugin_and_a_chosen_network_are_no_evidence() -> None:
    log = parse(f"{PREFIX} NET/Plugin: Loaded net plugin AWS Libfabric (v8)\n{PREFIX} Using network AWS Libfabric")
    assert (log.plugin, log.network, log.pairs) == ("AWS Libfabric (v8)", "Libfabric", ())


def test_ranks_that_share_a_file_are_kept_apart() -> None:
    log = parse(
        "pod-0:194:1 [0] NCCL INFO comm 0xa rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0\n"
        "pod-0:195:1 [1] NCCL INFO comm 0xb rank 1 nRanks 4 nNodes 2 localRanks 2 localRank 1 MNNVL 0\n"
        "pod-0:194:7 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct\n"
        "pod-0:195:7 [1] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/Socket/0\n"
        "pod-0:195:9 [1] NCCL INFO NET/OFI Selected Provider is efa (found 4 nics)\n"
        "pod-0:194:9 [0] NCCL INFO NET/OFI Selected Provider is efa (found 3 nics)\n"
    )
    assert [(p.process.pid, p.transport) for p in log.pairs if p.process] == [
        (194, "SHM"),
        (195, "NET/Socket"),
    ]
    assert [(c.process.pid, c.rank) for c in log.communicators] == [(194, 0), (195, 1)]
    assert log.nics_found == 3


def test_a_line_that_another_rank_cut_is_counted_and_not_believed() -> None:
    log = parse(
        "pod-0:195:7 [1] NCCL INFO Channel 01/0 : 1[1] -> 2[0] [send] via NET/Libfabric/0"
        "pod-0:194:7 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct\n"
    )
    assert paths(log) == [(0, 1, "SHM", 1)]
    assert log.damaged_lines == 1


@pytest.mark.parametrize(
    "tail",
    [
        "2[2] -> 3[0] [send] via NET/Libfabric/0/GDR",
        "2[2] -> 3[0] [send] via NET/Libfa",
        "2[2] -> 3[0] [send] via NE",
        "2[2] -> 3[0] [send] v",
        "2[2] -> 3[",
        "2[2] ->",
    ],
)
def test_a_truncated_channel_line_is_no_evidence(tail: str) -> None:
    log = parse(f"{PREFIX} Channel 00/0 : {tail}")
    assert (log.pairs, log.damaged_lines) == ((), 1)


def test_a_pair_that_may_belong_to_two_communicators_says_so() -> None:
    log = parse(
        f"{PREFIX} comm 0xa rank 0 nRanks 8 nNodes 2 localRanks 4 localRank 0 MNNVL 0\n"
        f"{PREFIX} comm 0xb rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0\n"
        f"{PREFIX} Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct\n"
        f"{PREFIX} Channel 00/0 : 0[0] -> 4[0] [send] via NET/Socket/0\n"
    )
    assert [pair.communicator_ranks for pair in log.pairs] == [(2, 8), (8,)]


def test_lines_may_come_as_an_iterable_and_channels_are_counted_once() -> None:
    line = f"{PREFIX} Channel 03/0 : 2[2] -> 3[3] via P2P/CUMEM\n"
    assert paths(parse(iter([line, line]))) == [(2, 3, "P2P", 1)]


def test_the_rows_of_topo_nccl_name_pair_transport_path_and_channels() -> None:
    assert describe(fixture("nccl_g6e_socket.log")) == [
        {
            "process": "llama-3-8b-node-0-0:195",
            "from": 3,
            "to": 4,
            "transport": "NET/Socket",
            "path": "NET/Socket/0",
            "direction": "send",
            "channels": 2,
            "communicator": "",
        }
    ]


@pytest.mark.parametrize("word", ["nics)", "comm", "Channel", "->", "coll", "Using", "Ring"])
def test_a_line_torn_to_one_word_is_no_end_of_the_parser(word: str) -> None:
    assert parse(f"{PREFIX} {word}\n{PREFIX} NET/OFI Selected Provider is efa (found 4 nics)").nics_found == 4


WORDS = st.sampled_from(
    ["pod-0:1:2", "[0]", "NCCL INFO", "NCCL WARN", "Channel", "00/0", ":", "0[0]", "->", "1[", "via", "NET/",
     "NET/Libfabric/0/GDRDMA", "comm", "rank", "nRanks", "nics)", "coll", "channels,", "Using", "network",
     "²"]
)  # fmt: skip


@given(st.lists(st.lists(WORDS, max_size=12).map(" ".join), max_size=6))
def test_no_order_of_nccls_words_makes_the_parser_fail(lines: list[str]) -> None:
    log = parse("\n".join(lines))
    assert all(pair.channels >= 1 for pair in log.pairs)


@given(st.text(max_size=300))
def test_no_text_makes_the_parser_fail(text: str) -> None:
    parse(f"{PREFIX} Channel {text}")
    parse(f"{PREFIX} {text}\nNCCL {text}")
