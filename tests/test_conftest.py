"""No skip hides: CI fails on one that it doesn't expect."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.skips import is_expected
from tests.source import ROOT

SKIPPED = 'import pytest\n\ndef test_it():\n    pytest.skip("no reason")\n'
WHOLE_MODULE = 'import pytest\n\npytest.importorskip("no_such_package")\n'
ON_A_GPU = 'import pytest\n\ndef test_it():\n    pytest.skip("needs a GPU: nvidia-smi finds none")\n'


def run(folder: Path, text: str, *options: str, ci: str) -> subprocess.CompletedProcess[str]:
    (folder / "tests").mkdir()
    for name in ("__init__.py", "conftest.py", "skips.py"):
        shutil.copy(ROOT / "tests" / name, folder / "tests" / name)
    (folder / "tests" / "test_one.py").write_text("def test_passes():\n    pass\n")
    (folder / "tests" / "test_two.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "tests"]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "CI": ci}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("text", "options"), [(SKIPPED, ()), (WHOLE_MODULE, ("-n", "2"))], ids=["a test", "a module, in two processes"]
)
def test_a_skip_that_nobody_expects_fails_in_ci_and_is_named(text, options, tmp_path):
    ended = run(tmp_path, text, *options, ci="true")
    assert ended.returncode == 1, ended.stdout
    assert "UNEXPECTED SKIP tests/test_two.py" in ended.stdout


def test_at_home_it_is_named_and_passes(tmp_path):
    ended = run(tmp_path, SKIPPED, ci="")
    assert ended.returncode == 0, ended.stdout
    assert "UNEXPECTED SKIP" in ended.stdout


def test_an_expected_skip_passes_in_ci(tmp_path):
    assert run(tmp_path, ON_A_GPU, ci="true").returncode == 0


def test_an_expected_skip_is_expected_for_its_reason_only():
    assert is_expected("tests/x.py::test_y", "Skipped: needs a GPU")
    assert not is_expected("tests/x.py::test_y", "Skipped: felt like it")
