"""Rewrite the snapshots of the public surface."""

from tests.snapshots import FOLDER, SNAPSHOTS

for name, snapshot in SNAPSHOTS.items():
    (FOLDER / name).write_text(snapshot())
print(f"{len(SNAPSHOTS)} snapshots written")
