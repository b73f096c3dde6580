"""What others build on changes on purpose only: `make goldens` rewrites the snapshots, the diff is the notice."""

import pytest

from tests.snapshots import FOLDER, SNAPSHOTS


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_public_surface_is_the_one_written_down(name):
    written, now = (FOLDER / name).read_text(), SNAPSHOTS[name]()
    assert now == written, "the public surface changed; if that is meant, run `make goldens` and say so in CHANGELOG.md"


def test_every_snapshot_on_disk_is_still_taken():
    assert {path.name for path in FOLDER.glob("*.txt")} == set(SNAPSHOTS)
