"""The order of turns, and what a lab that ends badly says."""

from pathlib import Path

import pytest

from tests.workloads.lab.scene import LOOPBACK
from workloads.catalogue.machines import CPU
from workloads.lab.experiments import PlannedExperiment, load_experiment
from workloads.lab.fetch import fetch_data
from workloads.lab.run import POD_LOGS, LabOutcome, Observer, Turn, TurnOutcome, run_experiment, turns

EXPERIMENT = """
name: three
vary: topology
base: {topology: cpu-1x2-local, run: {model: tiny, globalBatchTokens: 1024, sequenceLength: 128}}
arms:
  - {name: a}
  - {name: b, patch: {topology: cpu-2x1-tcp-1gbit}}
  - {name: c, patch: {topology: cpu-2x1-tcp-50mbit}}
repeats: 3
"""

ONE_THAT_SAVES = """
name: one
vary: topology
base:
  topology: cpu-1x2-local
  run: {model: tiny, globalBatchTokens: 1024, sequenceLength: 128, restarts: 4}
arms: [{name: a}]
"""


@pytest.fixture
def planned(tmp_path: Path) -> PlannedExperiment:
    path = tmp_path / "three.yaml"
    path.write_text(EXPERIMENT)
    return load_experiment(str(path), CPU)


def test_each_repeat_begins_one_arm_further_on(planned: PlannedExperiment) -> None:
    order = [t.plan.config.arm for t in turns(planned, CPU)]
    assert order == ["a", "b", "c", "b", "c", "a", "c", "a", "b"]


def test_each_repeat_is_an_attempt_of_its_own(planned: PlannedExperiment) -> None:
    names = [t.plan.job_name for t in turns(planned, CPU)]
    assert len(set(names)) == 9
    assert names[0] == "cpu-1x2-local-1"
    assert "cpu-1x2-local-3" in names


def test_repeats_change_nothing_but_the_attempt(planned: PlannedExperiment) -> None:
    first, last = (next(t for t in turns(planned, CPU) if t.repeat == r and t.plan.config.arm == "c") for r in (0, 2))
    ignored = {"attempt", "job_name"}
    assert first.plan.config.model_dump(exclude=ignored) == last.plan.config.model_dump(exclude=ignored)


def test_data_that_cannot_be_fetched_ends_the_lab_before_a_pod_starts(
    planned: PlannedExperiment, tmp_path: Path
) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text("#!/bin/sh\necho 'no such dataset' >&2\nexit 2\n")
    interpreter.chmod(0o755)
    with pytest.raises(ValueError, match=r"data\.source embedded can't be read on this machine: no such dataset"):
        fetch_data(planned.plans[0].config, tmp_path, interpreter)


def test_a_full_disk_is_told_before_a_pod_starts(
    planned: PlannedExperiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workloads.lab.run.LEAST_FREE_BYTES", 2**60)
    with pytest.raises(ValueError, match=r"MiB are free and a lab's records want .* give another folder with --out"):
        _run(planned, tmp_path, [], Path("/bin/false"))


def test_a_turn_that_fails_is_told_and_the_others_still_run(planned: PlannedExperiment, tmp_path: Path) -> None:
    # It fetches data, but has no torch: each pod ends at once with an error of its own.
    interpreter = tmp_path / "bin" / "python"
    interpreter.parent.mkdir()
    interpreter.write_text("#!/bin/sh\n[ $2 = trainer.fetch ] || { echo 'no torch here' >&2; exit 7; }\n")
    interpreter.chmod(0o755)
    ended: list[TurnOutcome] = []
    outcome = _run(planned, tmp_path, ended, interpreter)
    assert len(ended) == len(outcome.turns) == len(outcome.failures) == 9
    assert outcome.records == ()
    logs = list((tmp_path / "out" / "three" / POD_LOGS).glob("*/*.log"))
    assert len(logs) == 3 * (1 + 2 + 2)
    assert any("no torch here" in log.read_text() for log in logs)
    assert all("exit code 7" in failure and "no torch here" in failure for failure in outcome.failures)


def test_a_turn_that_saves_is_started_over_as_often_as_its_plan_says(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(ONE_THAT_SAVES)
    # It fails on the first start and ends well on the next.
    interpreter = tmp_path / "bin" / "python"
    interpreter.parent.mkdir()
    interpreter.write_text(
        '#!/bin/sh\n[ $2 = trainer.fetch ] && exit\necho "start $TOPOLAB_RESTARTS"; [ "$TOPOLAB_RESTARTS" = 1 ]\n'
    )
    interpreter.chmod(0o755)
    left = tmp_path / "out" / "one" / "checkpoints" / "cpu-1x2-local-1" / "checkpoint-4"
    left.mkdir(parents=True)
    outcome = _run(load_experiment(str(file), CPU), tmp_path, [], interpreter)
    logs = {log.parent.name: log.read_text() for log in (tmp_path / "out" / "one" / POD_LOGS).glob("*/*.log")}
    assert set(logs) == {"01-cpu-1x2-local-1", "01-cpu-1x2-local-1-start-2"}
    assert ["start 0" in logs["01-cpu-1x2-local-1"], "start 1" in logs["01-cpu-1x2-local-1-start-2"]] == [True, True]
    assert not left.exists()
    assert outcome.failures == (f"cpu-1x2-local-1 ended well but wrote 0 records under {tmp_path / 'out' / 'one'}",)


def _run(planned: PlannedExperiment, tmp_path: Path, ended: list[TurnOutcome], interpreter: Path) -> LabOutcome:
    def ignore(*_: object) -> None:
        """What this test doesn't look at."""

    begun: list[Turn] = []
    observer = Observer(turn_begins=begun.append, event=ignore, turn_ends=ended.append)
    return run_experiment(planned, CPU, tmp_path / "out", tmp_path / "cache", observer, LOOPBACK, interpreter)
