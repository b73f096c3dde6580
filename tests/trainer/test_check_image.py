"""What an image lacks is named, before the run starts."""

import resource
from dataclasses import replace

import pytest

from trainer.check_image import PACKAGES, Found, Wanted, has_ipc_lock, library_names, look, main, missing

WANTED = Wanted(efa_devices=1, shm_gib=64, net_plugin="ofi")
WHOLE = Found(
    packages=PACKAGES,
    nccl="2.30.7",
    libraries=("libfabric.so.1", "libnccl-net-ofi.so"),
    user=0,
    memlock_bytes=65536,
    ipc_lock=True,
    shm_bytes=64 * 2**30,
)


def test_a_whole_image_lacks_nothing():
    assert missing(WANTED, WHOLE) == []


LACKS = [
    ({"packages": PACKAGES[:-1]}, f"no package {PACKAGES[-1]};"),
    ({"nccl": None}, "torch has no NCCL"),
    ({"libraries": ("libnccl-net-ofi.so",)}, "libfabric.so.1 doesn't load"),
    ({"libraries": ("libfabric.so.1",)}, "libnccl-net-ofi.so doesn't load"),
    ({"ipc_lock": False}, "memlock is limited to 64 KiB"),
    ({"ipc_lock": False, "user": 1000}, "isn't effective for user 1000"),
    ({"shm_bytes": 64 * 2**20}, "/dev/shm has 0.06 GiB of 64"),
]


@pytest.mark.parametrize(("lack", "sentence"), LACKS)
def test_each_lack_is_named_alone(lack, sentence):
    (found,) = missing(WANTED, replace(WHOLE, **lack))
    assert sentence in found


def test_an_unlimited_memlock_needs_no_capability():
    assert missing(WANTED, replace(WHOLE, ipc_lock=False, memlock_bytes=resource.RLIM_INFINITY)) == []


def test_tcp_needs_nothing_of_efa():
    bare = replace(WHOLE, libraries=(), ipc_lock=False)
    assert missing(replace(WANTED, efa_devices=0), bare) == []


def test_the_plugin_is_looked_for_by_the_name_that_nccl_uses():
    assert library_names(WANTED) == ("libfabric.so.1", "libnccl-net-ofi.so")
    assert library_names(replace(WANTED, net_plugin=None)) == ("libfabric.so.1", "libnccl-net.so")


def test_the_capability_is_read_from_the_effective_set():
    assert has_ipc_lock("Name:\tpython\nCapInh:\t0000000000000000\nCapEff:\t0000000000004000\n")
    assert not has_ipc_lock("CapPrm:\t0000000000004000\nCapEff:\t00000000a80425fb\n")


def test_this_machine_has_the_contracts_package_and_no_efa():
    found = look(WANTED)
    assert "pydantic" in found.packages
    assert found.libraries == ()
    assert found.shm_bytes > 0


def test_the_command_prints_what_is_missing_and_fails(capsys):
    assert main(["--efa-devices", "0", "--shm-gib", "1000000"]) == 1
    assert "check: /dev/shm has" in capsys.readouterr().err
