"""`topo watch`."""

import json
import re
import sys
import time
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from tests.workloads.cli.test_why_pending import STACK
from tests.workloads.operations.watch.scene import JOB, READY, claim, pod, run, train_job
from workloads.cli import watch
from workloads.cli.watch_lines import Expected, rows
from workloads.operations.watch.watched import watched

JOB_OF_STACK = "g6e12xl-4x4-efa1-7"
RUNNING = [pod(0, "Running", "n0"), pod(1, "Running", "n1")]
UP = [claim(*READY), claim(*READY)]


def seen(*log, end=None, pods=RUNNING, claims=UP):
    return watched(JOB, run(job=train_job(end), pods=pods, claims=claims), log)


@pytest.fixture
def looks(monkeypatch, tmp_path) -> Iterator[list[object]]:
    """What look after look finds; an error is raised. Nobody waits, and all must have been asked for."""
    found: list[object] = []
    asked = []

    def look(_, **which):
        asked.append((which["namespace"], which["job"]))
        answer = found.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(watch, "connect", lambda *_: "api")
    monkeypatch.setattr(watch, "look", look)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK)
    monkeypatch.chdir(tmp_path)
    yield found
    assert found == []
    assert set(asked) <= {("topolab", JOB_OF_STACK)}


def told(text):
    """Without the time of day."""
    return [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in text.splitlines()]


def test_without_a_terminal_it_is_a_line_for_each_change_until_the_end(topo, looks):
    starting = seen(pods=[pod(0, node="n0"), pod(1, node="n1")])
    looks += [starting, starting, seen("step 3 of 30: 0.5 s"), seen(end="Complete")]
    called = topo("watch", "Pulumi.dev.yaml")
    assert called.code == 0
    dollars = "4.53 USD for the nodes that are up, 9.06 an hour"
    lines = told(called.out)
    assert lines[0].startswith(f"start: 2 of 2 pods fetch their image or prepare; {dollars}")
    assert lines[1] == f"training, step 3 of 30, 13.5 s left; {dollars}"
    assert lines[2] == f"complete; {dollars}"
    assert lines[3].startswith("the run is over: `./topo collect Pulumi.dev.yaml` fetches its record")
    assert len(lines) == 4


def test_a_run_that_failed_is_exit_code_one_and_says_where_to_look(topo, looks):
    looks += [seen(), seen(end="Failed")]
    called = topo("watch", "Pulumi.dev.yaml")
    assert called.code == 1
    assert "`./topo why-pending Pulumi.dev.yaml` says why" in called.out


def test_a_cluster_that_is_silent_for_a_while_is_told_and_asked_again(topo, looks):
    looks += [seen(), ValueError("the cluster doesn't answer"), seen(end="Complete")]
    called = topo("watch", "Pulumi.dev.yaml")
    assert (called.code, called.err) == (0, "the cluster doesn't answer\n")


def test_a_cluster_that_never_answered_is_an_error(topo, looks):
    looks += [ValueError("the cluster doesn't answer")]
    called = topo("watch", "Pulumi.dev.yaml")
    assert (called.code, called.err) == (2, "topo: the cluster doesn't answer\n")


def test_one_look_shows_measured_beside_predicted(topo, looks):
    looks += [seen("step 15 of 30: 0.5 s")]
    called = topo("watch", "Pulumi.dev.yaml", "--once")
    shown = {line[:9].strip(): line[10:] for line in called.out.splitlines()}
    assert called.code == 0
    assert shown["job"] == JOB
    assert shown["nodes"] == "2 asked for, 2 launched, 2 joined, 2 ready"
    assert shown["progress"] == "###############............... step 15 of 30"
    assert shown["step"].startswith("500 ms, predicted ")
    assert shown["left"] == "7.50 s"


def test_before_the_first_step_the_prediction_stands_alone(topo, looks):
    looks += [seen(claims=[])]
    called = topo("watch", "Pulumi.dev.yaml", "--once")
    assert "step      predicted " in called.out
    assert "left      the run is predicted to take " in called.out
    assert "nodes     none that Karpenter made" in called.out
    assert "spent     no GPU node is up" in called.out


def test_without_a_file_and_a_price_neither_is_said():
    spot = [claim(*READY, **{"karpenter.sh/capacity-type": "spot"})]
    shown = dict(rows(seen(claims=spot), Expected(step_s=None, wall_clock_s=None)))
    assert shown["spent"] == "dollars unknown: no price for these nodes"
    assert not {"step", "left", "progress"} & shown.keys()


def test_why_pods_wait_and_what_to_do_stand_on_the_screen(topo, looks):
    looks += [seen(pods=[])]
    called = topo("watch", "Pulumi.dev.yaml", "--once")
    assert f"why       TrainJob {JOB} has no pods yet" in called.out
    assert "remedy    look whether Trainer and JobSet run" in called.out


def test_for_programs_it_is_one_look_in_json(topo, looks):
    looks += [seen("step 15 of 30: 0.5 s")]
    document = json.loads(topo("watch", "Pulumi.dev.yaml", "--json").out)
    assert (document["phase"], document["end"]) == ("training", None)
    assert document["nodes"] == {"asked": 2, "launched": 2, "joined": 2, "ready": 2}
    assert document["progress"]["left_s"] == 7.5
    assert document["predicted"]["step_s"]["low"] > 0
    assert document["usdPerHour"] == pytest.approx(9.05712)


def test_on_a_terminal_it_is_one_screen_that_is_drawn_anew(looks, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    looks += [seen(), seen("step 15 of 30: 0.5 s"), seen(end="Complete")]
    assert watch.command.main(["Pulumi.dev.yaml"], standalone_mode=False) == 0
    drawn = capsys.readouterr().out
    assert "step 15 of 30" in drawn
    assert not re.search(r"^\d\d:\d\d:\d\d ", drawn, re.MULTILINE)


@pytest.fixture
def suspended(monkeypatch, looks):
    found: list[object] = []
    monkeypatch.setattr(watch, "suspend", lambda api, **which: found.append((api, which)))
    assert looks == []
    return found


def cancel(answer):
    return CliRunner().invoke(watch.command, ["Pulumi.dev.yaml", "--cancel"], input=answer, standalone_mode=False)


def test_a_run_is_cancelled_after_a_yes_and_its_platform_stays(suspended):
    outcome = cancel("y\n")
    assert suspended == [("api", {"namespace": "topolab", "job": JOB_OF_STACK})]
    assert "the platform stays" in outcome.stdout
    assert "raise run.attempt" in outcome.stdout


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_anything_but_yes_leaves_the_run_alone(suspended, answer):
    assert isinstance(cancel(answer).exception, click.Abort)
    assert suspended == []
