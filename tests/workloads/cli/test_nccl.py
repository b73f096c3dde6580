"""`topo nccl`."""

import io
import json
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.mark.parametrize(
    ("log", "transport"),
    [("nccl_g6e_efa.log", "NET/Libfabric"), ("nccl_g6e_socket.log", "NET/Socket"), ("nccl_g6e_shm.log", "SHM")],
)
def test_the_transport_of_each_pair_is_read_off_the_log(log, transport, topo):
    called = topo("nccl", str(FIXTURES / log), "--json")
    assert called.code == 0
    [seen] = json.loads(called.out)["logs"]
    assert {pair["transport"] for pair in seen["pairs"]} == {transport}


def test_a_table_names_plugin_network_cards_and_direct_access(topo):
    out = topo("nccl", str(FIXTURES / "nccl_p4d_4x1_efa.log")).out
    rows = dict(line.split("  ", 1) for line in out.split("\n\n")[0].splitlines()[2:])
    assert rows["GPUDirect RDMA"].strip() == "used"
    assert "NET/Libfabric/0/GDRDMA" in out


def test_a_dash_reads_standard_input(topo, monkeypatch):
    class Stdin:
        buffer = io.BytesIO((FIXTURES / "nccl_g6e_socket.log").read_bytes())

    monkeypatch.setattr("sys.stdin", Stdin)
    called = topo("nccl", "-")
    assert called.code == 0
    assert "NET/Socket" in called.out


def test_a_log_that_proves_nothing_is_not_true_and_says_how_to_get_one(topo, tmp_path):
    (tmp_path / "quiet.log").write_text("step 1 loss 3.2\n")
    called = topo("nccl", str(tmp_path / "quiet.log"))
    assert called.code == 1
    assert "quiet.log: no line says" in called.err
    assert "NCCL_DEBUG=INFO" in called.err


def test_a_missing_log_is_named(topo):
    called = topo("nccl", "gone.log")
    assert called.code == 2
    assert "gone.log: can't be read" in called.err


def test_torn_bytes_do_not_end_the_verb(topo, tmp_path):
    (tmp_path / "torn.log").write_bytes((FIXTURES / "nccl_g6e_efa.log").read_bytes() + b"\xff\xfe\n")
    assert topo("nccl", str(tmp_path / "torn.log")).code == 0
