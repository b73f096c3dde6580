"""All checks at once: in order, in time, and with what stood in the way as a row."""

import threading

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from tests.workloads.operations.preflight.asking import ACCOUNT, ARN, answering, aws, subject
from workloads.operations.preflight.ask import answered, ask_all
from workloads.operations.preflight.checks import OF_AWS, OF_OTHERS, is_ready, preflight
from workloads.operations.preflight.questions import account
from workloads.operations.preflight.questions.web import Web
from workloads.operations.preflight.rows import green, grey, red


def test_rows_stand_in_the_order_of_the_checks_whoever_answers_first():
    second_is_done = threading.Event()

    def first():
        second_is_done.wait()
        yield green("first", "done")

    def second():
        second_is_done.set()
        yield green("second", "done")

    rows = ask_all({"first": first, "second": second}, limit_s=10)
    assert [row.check for row in rows] == ["first", "second"]


def test_a_check_that_doesnt_answer_in_time_is_grey_and_holds_nobody_up():
    never, daemons = threading.Event(), []

    def hangs():
        # Nor does its thread hold up the end of the program.
        daemons.append(threading.current_thread().daemon)
        never.wait()
        yield green("hangs", "done")

    rows = ask_all({"hangs": hangs, "answers": lambda: iter([green("answers", "done")])}, limit_s=0.2)
    never.set()
    assert [(row.check, row.colour) for row in rows] == [("hangs", "grey"), ("answers", "green")]
    assert rows[0].sentence == "no answer within 0.2 s"
    assert daemons == [True]


def raising(error):
    def check():
        raise error
        yield

    return check


@pytest.mark.parametrize(
    ("error", "colour", "said"),
    [
        (ClientError({"Error": {"Code": "ExpiredToken"}}, "X"), "red", "AWS takes these credentials no more"),
        (ClientError({"Error": {"Code": "AccessDenied"}}, "X"), "grey", "may not call X (AccessDenied)"),
        (ClientError({"Error": {"Code": "Throttling"}}, "X"), "grey", "AWS answers X with Throttling"),
        (NoCredentialsError(), "red", "there are no AWS credentials"),
        (EndpointConnectionError(endpoint_url="https://x"), "grey", "AWS can't be asked"),
        (OSError("no route"), "grey", "there is no way to it from here"),
    ],
)
def test_what_keeps_a_check_from_an_answer_is_a_row(error, colour, said):
    (row,) = answered("the check", raising(error))
    assert (row.check, row.colour) == ("the check", colour)
    assert said in row.sentence
    assert row.remedy


def test_a_fault_of_ours_isnt_a_row():
    with pytest.raises(KeyError):
        answered("the check", raising(KeyError("x")))
    with pytest.raises(KeyError):
        ask_all({"the check": raising(KeyError("x"))}, limit_s=10)


@pytest.fixture
def quiet(monkeypatch):
    """Questions that ask nobody."""
    for table in (OF_AWS, OF_OTHERS):
        for name in table:
            monkeypatch.setitem(table, name, lambda _, n=name: iter([green(n, "done")]))


@pytest.mark.usefixtures("quiet")
def test_a_whole_preflight_asks_everything_once():
    with answering(("sts", "get_caller_identity", {"Account": ACCOUNT, "Arn": ARN})):
        rows = preflight(subject(), aws(), Web(), None)
    assert [row.check for row in rows] == ["identity", *OF_AWS, *OF_OTHERS]
    assert is_ready(rows)


@pytest.mark.usefixtures("quiet")
def test_with_dead_credentials_aws_is_asked_nothing_and_the_rest_is():
    with answering(("sts", "get_caller_identity", "ExpiredToken")):
        rows = preflight(subject(), aws(), Web(), None)
    colours = {row.check: row.colour for row in rows}
    assert colours["identity"] == "red"
    assert {colours[name] for name in OF_AWS} == {"grey"}
    assert {colours[name] for name in OF_OTHERS} == {"green"}
    assert not is_ready(rows)


@pytest.mark.usefixtures("quiet")
def test_an_account_that_cant_be_reached_is_grey_and_one_without_credentials_red(monkeypatch):
    for error, colour in (
        (EndpointConnectionError(endpoint_url="https://x"), "grey"),
        (NoCredentialsError(), "red"),
    ):
        monkeypatch.setattr(account, "identity", lambda *_, e=error: (_ for _ in ()).throw(e))
        assert preflight(subject(), aws(), Web(), None)[0].colour == colour


def test_grey_rows_dont_keep_a_stack_from_going_up_and_one_red_row_does():
    assert is_ready([green("a", ""), grey("b", "")])
    assert not is_ready([green("a", ""), red("b", "", "")])
