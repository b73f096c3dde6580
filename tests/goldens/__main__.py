"""Rewrite the goldens, and remove those whose topology is no longer named."""

from tests.goldens import FOLDER, NAMES, golden

for stale in {path.stem for path in FOLDER.glob("*.yaml")} - set(NAMES):
    (FOLDER / f"{stale}.yaml").unlink()
for name in NAMES:
    (FOLDER / f"{name}.yaml").write_text(golden(name))
print(f"{len(NAMES)} goldens written")
