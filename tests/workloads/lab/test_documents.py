import base64
from collections.abc import Mapping
from pathlib import Path

import pytest

from workloads.lab.documents import look_up

CLAIM = {"kind": "PersistentVolumeClaim", "metadata": {"name": "records"}, "spec": {"volumeName": "volume"}}


def _volume(source: Mapping[str, object]) -> dict[str, object]:
    return {"kind": "PersistentVolume", "metadata": {"name": "volume"}, "spec": source}


def test_config_maps_and_secrets_hold_bytes_in_whichever_form_they_were_written() -> None:
    encoded = base64.b64encode(b"\x00token").decode()
    found = look_up(
        [
            {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "é"}, "binaryData": {"b": encoded}},
            {"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": encoded}, "stringData": {"b": "clear"}},
            {"kind": "Namespace", "metadata": {"name": "n"}},
        ]
    )
    assert found.config_maps == {"c": {"a": "é".encode(), "b": b"\x00token"}}
    assert found.secrets == {"s": {"a": b"\x00token", "b": b"clear"}}


def test_a_claim_stands_for_the_folder_of_its_volume_which_is_made_where_the_volume_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "records"
    source = {"hostPath": {"path": str(folder), "type": "DirectoryOrCreate"}}
    assert look_up([CLAIM, _volume(source)]).claims == {"records": folder}
    assert folder.is_dir()


def test_a_volume_may_name_its_claim_instead() -> None:
    claim = {**CLAIM, "spec": {}}
    volume = _volume({"hostPath": {"path": "/data"}, "claimRef": {"name": "records"}})
    assert look_up([claim, volume]).claims == {"records": Path("/data")}


@pytest.mark.parametrize(
    ("documents", "sentence"),
    [
        ([CLAIM], "PersistentVolumeClaim records: its volume volume isn't rendered"),
        ([CLAIM, _volume({"csi": {"driver": "fsx.csi.aws.com"}})], "PersistentVolume volume: csi can't be mounted"),
        (
            [{"kind": "Secret", "metadata": {"name": "s"}, "data": {"token": "not base64!"}}],
            "Secret s: the value of token isn't base64",
        ),
    ],
)
def test_what_cannot_be_looked_up_is_named(documents: list[dict[str, object]], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        look_up(documents)
