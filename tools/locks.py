"""Write the hashed locks beside the requirements: `make locks`.

One resolution serves Python 3.11 and 3.12. The trainer's lock leaves out torch and all that belongs to it:
the image brings its own, and the wheels of the lock go beside it with `--no-deps`.
"""

import subprocess
import sys
from pathlib import Path

from tools.pins import TORCH_FAMILY, read_lock
from tools.uv import find_uv

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Resolve all four locks; later ones keep the versions of the earlier."""
    uv = find_uv(sys.executable)
    program, lab = ("-c", "requirements.lock"), ("-c", "requirements-lab.lock")
    _compile(uv, "requirements.txt", "requirements.lock")
    _compile(uv, "requirements-dev.txt", "requirements-dev.lock", *program)
    _compile(uv, "requirements-lab.txt", "requirements-lab.lock", *program)
    names = read_lock((ROOT / "requirements-lab.lock").read_text())
    left_out = [word for n in names if TORCH_FAMILY.match(n) for word in ("--no-emit-package", n)]
    _compile(uv, "trainer/requirements.txt", "trainer/requirements.lock", *lab, *left_out)


def _compile(uv: str, source: str, lock: str, *options: str) -> None:
    subprocess.run(
        [
            uv, "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--python-version", "3.11",
            "--no-emit-index-url", "--no-emit-find-links", "--custom-compile-command", "make locks",
            source, "--output-file", lock, *options,
        ],
        cwd=ROOT,
        check=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
