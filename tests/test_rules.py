"""docs/rules.md: every rule of the platform has code that follows it and a test that holds it, and both are there."""

import ast
import re
from functools import cache

import pytest

from tests.source import ROOT

PAGE = (ROOT / "docs/rules.md").read_text(encoding="utf-8")
ROW = re.compile(
    r"^\| (?P<number>\d+(?:\.\d+)*[a-z]?|[A-Z]\d+) \| (?P<rule>.+?) \| (?P<code>.*?) \| (?P<tests>.*?) \|$"
)
ROWS = [match for match in map(ROW.match, PAGE.splitlines()) if match]
FILE = re.compile(r"`([\w./-]+\.\w+|[\w./-]*(?:Dockerfile|Makefile))`")
TEST = re.compile(r"`([\w./-]+\.py)::(\w+)`")

CHAPTERS = {0: 0, 1: 8, 2: 11, 3: 6, 4: 0, 5: 4, 6: 9, 7: 0, 8: 0, 9: 0}
"""How many sections each has; without any, its rules bear its own number."""
SECTIONS = [f"{one}.{n}" if n else f"{one}" for one, last in CHAPTERS.items() for n in range(min(last, 1), last + 1)]
FAILURES, OPEN_POINTS = 15, 10


@cache
def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def ids(row: re.Match[str]) -> str:
    return row["number"]


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_the_code_of_a_rule_is_there(row):
    named = FILE.findall(row["code"])
    assert named, f"rule {row['number']} names no file"
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_the_tests_of_a_rule_are_there(row):
    named = TEST.findall(row["tests"])
    # A rule without a test says in words who holds it.
    assert named or re.search(r"[a-z]{3,} [a-z]+", row["tests"]), f"rule {row['number']} has no test and no reason"
    assert [f"{path}::{name}" for path, name in named if not (ROOT / "tests" / path).exists()] == []
    assert [f"{path}::{name}" for path, name in named if name not in functions(path)] == []


def test_most_rules_have_a_test():
    held = [row for row in ROWS if TEST.search(row["tests"])]
    assert len(held) >= 0.9 * len(ROWS)


def test_no_line_that_looks_like_a_rule_is_left_out():
    tables = [line for line in PAGE.splitlines() if re.match(r"\| [\dFC]", line)]
    assert tables == [row[0] for row in ROWS]


def test_numbers_are_given_once_and_every_section_has_a_rule():
    numbers = [row["number"] for row in ROWS]
    assert len(numbers) == len(set(numbers))
    assert [
        one for one in SECTIONS if not any(re.match(rf"{re.escape(one)}[a-z]$", number) for number in numbers)
    ] == []


@pytest.mark.parametrize(("letter", "count"), [("F", FAILURES), ("C", OPEN_POINTS)])
def test_every_failure_and_every_open_point_has_its_row(letter, count):
    assert [row["number"] for row in ROWS if row["number"].startswith(letter)] == [
        f"{letter}{number}" for number in range(1, count + 1)
    ]
