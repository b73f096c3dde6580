"""No skip hides: CI fails on one that it doesn't expect."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.skips import is_expected
from tests.source import ROOT, modules

SKIPPED = 'import pytest\n\ndef test_it():\n    pytest.skip("no reason")\n'
WHOLE_MODULE = 'import pytest\n\npytest.importorskip("no_such_package")\n'
ON_A_GPU = 'import pytest\n\ndef test_it():\n    pytest.skip("needs a GPU: nvidia-smi finds none")\n'


def run(
    folder: Path, text: str, *options: str, ci: str, missing: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    (folder / "tests").mkdir()
    for name in ("__init__.py", "conftest.py", "skips.py"):
        shutil.copy(ROOT / "tests" / name, folder / "tests" / name)
    conftest = folder / "tests" / "conftest.py"
    for name in missing:
        conftest.write_text(conftest.read_text().replace(f'"{name}"', f'"no_{name}"'))
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


def test_an_environment_that_is_neither_runs_nothing_and_says_what_it_lacks(tmp_path):
    ended = run(tmp_path, "from moto import mock_aws\n", ci="", missing=("moto", "torch"))
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR, ended.stdout
    assert "this environment lacks no_moto, and torch too" in ended.stderr


def test_what_an_environment_leaves_to_the_other_one_is_named(tmp_path):
    missing = "torch" if importlib.util.find_spec("moto") else "moto"
    text = "pytestmark = pytest.mark.torch\n" if missing == "torch" else "from moto import mock_aws\n"
    ended = run(tmp_path, text, ci="", missing=(missing,))
    assert ended.returncode == 0, ended.stdout
    assert "left to the other environment (see Makefile): test_two.py" in ended.stdout


def test_everything_that_make_e2e_or_make_soak_asks_for_lies_in_the_folder_that_they_name():
    marked = re.compile(r"^(?:pytestmark = |@)pytest\.mark\.(?:e2e|soak)\b", re.MULTILINE)
    found = [module.where for module in modules() if marked.search(module.text)]
    assert len(found) > 20
    assert [where for where in found if not where.startswith("tests/e2e/")] == []
    recipes = [line for line in (ROOT / "Makefile").read_text().splitlines() if "-m soak" in line or '-m "e2e' in line]
    assert len(recipes) == 2
    assert all(" tests/e2e -m " in line for line in recipes)


def test_an_environment_that_is_a_link_to_another_checkouts_is_no_file_of_the_repository(tmp_path):
    shutil.copy(ROOT / ".gitignore", tmp_path)
    for name in (".venv", ".venv-lab"):
        (tmp_path / name).symlink_to(ROOT)
    subprocess.run(["git", "init", "--quiet", "."], cwd=tmp_path, check=True)
    listed = subprocess.run(["git", "status", "--short"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert listed.stdout == "?? .gitignore\n"
