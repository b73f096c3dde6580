"""The deliberate faults still fit the code that they break."""

import ast

import pytest

from tests.deliberate_faults import FAULTS, broken, main
from tests.source import ROOT


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_fault_changes_its_file_into_another_program(fault):
    assert ast.dump(ast.parse(broken(fault))) != ast.dump(ast.parse((ROOT / fault.file).read_text()))


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_each_is_caught_by_tests_that_are_there(fault):
    for test in fault.caught_by:
        path, _, name = test.partition("::")
        assert name in (ROOT / path).read_text()


def test_an_unknown_name_is_told_with_those_that_are_known(capsys):
    assert main(["wrong colour"]) == 2
    assert "no such fault: wrong colour; there are wrong order, " in capsys.readouterr().out
