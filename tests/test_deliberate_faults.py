"""The deliberate faults still fit the code that they break."""

import ast

import pytest

from tests.deliberate_faults import FAULTS, broken, fails, main
from tests.source import ROOT


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_fault_changes_its_file_into_another_program(fault):
    assert ast.dump(ast.parse(broken(fault))) != ast.dump(ast.parse((ROOT / fault.file).read_text()))


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_each_is_caught_by_single_tests_that_are_there(fault):
    for test in fault.caught_by:
        path, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text()


def test_two_faults_and_more_are_caught_on_the_real_engine_or_cluster_too():
    assert len([fault for fault in FAULTS if any(test.startswith("tests/e2e/") for test in fault.caught_by)]) >= 2


def test_an_unknown_name_is_told_with_those_that_are_known(capsys):
    assert main(["wrong colour"]) == 2
    assert "no such fault: wrong colour; there are wrong order, " in capsys.readouterr().out


SOME = """
import pytest

def test_good(): pass

def test_bad(): assert 1 == 2

@pytest.fixture
def thing(): raise RuntimeError("not today")

def test_that_cannot_begin(thing): pass
"""


def test_a_test_fails_by_itself_and_one_that_cannot_begin_or_is_many_catches_nothing(tmp_path):
    (tmp_path / "test_some.py").write_text(SOME)
    assert not fails("test_some.py::test_good", tmp_path)
    assert fails("test_some.py::test_bad", tmp_path)
    for test in ("test_some.py::test_that_cannot_begin", "test_some.py", "test_some.py::test_nowhere"):
        with pytest.raises(RuntimeError, match=f"pytest {test} ended with"):
            fails(test, tmp_path)
