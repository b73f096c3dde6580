"""Which pins an interpreter lacks."""

import pytest

from tools.pins import lacking, meets, normal, read_lock, read_requirements, unmet

LOCK = """\
# made by something
app==2.0 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via -r requirements-lab.txt
Deep_Base[extra]==1.5 ; python_full_version < '3.12' \\
    --hash=sha256:cc
    # via
    #   -c other.lock
    #   app
nvidia-cuda==13 \\
    --hash=sha256:dd
    # via torch
torch==2.15.0 \\
    --hash=sha256:ee
    # via
    #   -r requirements-lab.txt
    #   app
"""


def test_a_lock_is_read_with_hashes_markers_and_who_asked():
    pins = read_lock(LOCK)
    assert list(pins) == ["app", "deep-base", "nvidia-cuda", "torch"]
    assert pins["app"].version == "2.0"
    assert pins["app"].lines == ("app==2.0 \\", "    --hash=sha256:aa \\", "    --hash=sha256:bb")
    assert pins["deep-base"].lines[0].startswith("Deep_Base[extra]==1.5 ; python_full_version")
    assert "app" in pins["deep-base"].asked_by


def test_requirements_are_followed_into_the_files_that_they_include(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.txt").write_text("# why\nApp_One[s3]>=1.2,<2  # because\n")
    (tmp_path / "all.txt").write_text("-r inner/a.txt\nplain\n")
    assert read_requirements(tmp_path / "all.txt") == {"app-one": ">=1.2,<2", "plain": ""}


@pytest.mark.parametrize(
    ("version", "wanted", "answer"),
    [
        ("2.11.0+cu130", ">=2.8,<3", True),
        ("2.7.1", ">=2.8,<3", False),
        ("3.0.0", ">=2.8,<3", False),
        ("3.0", ">=3.0.0", True),
        ("10.0", ">=9", True),
        ("1.0", "", True),
        (None, "", False),
    ],
)
def test_a_version_lies_in_its_range_by_number_not_by_letter(version, wanted, answer):
    assert meets(version, wanted) is answer


def test_what_is_missing_or_too_old_is_unmet():
    assert unmet({"app": "1.9", "torch": "2.15"}, {"app": ">=2", "torch": ">=2.8", "new": ""}) == ["app", "new"]


def test_an_unmet_requirement_brings_its_tree_but_never_the_interpreters_own_torch():
    pins = lacking({"torch": "2.11.0"}, ["app"], read_lock(LOCK))
    assert [pin.name for pin in pins] == ["app", "deep-base"]


def test_what_is_there_at_the_locks_version_is_not_fetched_again():
    assert [p.name for p in lacking({"deep-base": "1.5"}, ["app"], read_lock(LOCK))] == ["app"]


def test_nothing_is_lacking_where_everything_is_met():
    assert lacking({"app": "2.0"}, [], read_lock(LOCK)) == []


def test_names_are_compared_as_locks_write_them():
    assert normal("Types_PyYAML.x") == "types-pyyaml-x"
