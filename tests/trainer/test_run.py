"""The real trainer on two ranks: torchrun, DeepSpeed, gloo on loopback."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.trainer.launching import RECIPE, ZERO_3, Ended, Started, tiny_config
from trainer.config import DataConfig, Expectations, LinkExpectation
from trainer.flops import parameters
from trainer.summary import summarize
from workloads.operations.watch.progress import progress

pytestmark = pytest.mark.torch

STEPS = 12
CONFIG = tiny_config(steps=STEPS, checkpoint_every_steps=4, resume=True)


@pytest.fixture(scope="module")
def whole(fresh_cache: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A run of 12 steps that nothing disturbs; it saves after steps 4, 8 and 12."""
    return Started(CONFIG, tmp_path_factory.mktemp("whole"), fresh_cache()).wait()


def test_a_run_publishes_a_whole_record_and_its_own_verdict(whole: Ended) -> None:
    assert whole.exit_code == 0, whole.output
    record = whole.record
    assert (record.status, record.verdict.outcome, record.verdict.reasons) == ("complete", "VALID", ())
    assert record.run_id == whole.folder.name
    assert record.config == CONFIG
    assert record.model_parameters == parameters(CONFIG.model.architecture)
    assert {"torch", "deepspeed", "transformers", "python"} <= record.versions.keys()
    published = {f.relative_to(whole.folder).as_posix() for f in whole.folder.rglob("*") if f.is_file()}
    assert published == {
        "record.json",
        *(
            f"{kind}/rank-0000{rank}.{ending}"
            for kind, ending in (("steps", "jsonl"), ("logs", "log"))
            for rank in (0, 1)
        ),
    }
    assert "complete after step 12 of 12" in (whole.folder / "logs" / "rank-00000.log").read_text()


def test_rank_0_says_each_step_as_it_ends(whole: Ended) -> None:
    done = progress(None, (whole.folder / "logs" / "rank-00000.log").read_text().splitlines())
    assert done is not None
    assert (done.words, done.left_s) == (f"step {STEPS} of {STEPS}", 0.0)
    assert done.step_s == pytest.approx(sum(line.seconds for line in whole.steps()[-10:]) / 10, rel=0.01)
    assert "step 1 of" not in (whole.folder / "logs" / "rank-00001.log").read_text()


def test_every_rank_writes_every_step_once_with_the_same_loss(whole: Ended) -> None:
    first, second = whole.steps(0), whole.steps(1)
    assert [line.step for line in first] == list(range(1, STEPS + 1))
    assert [line.phase for line in first] == ["warmup"] * 2 + ["timed"] * 10
    assert [line.loss for line in first] == [line.loss for line in second]
    assert all(line.loss is not None and 5 < line.loss < 8 for line in first)
    assert first[0].loss == pytest.approx(6.9, abs=0.1)  # ln 1000: nothing is known before the first step
    assert all(line.gradient_norm is not None and line.gradient_norm > 0 for line in first)
    assert {(line.real_tokens, line.padded_tokens) for line in first} == {(2 * 2 * 32, 0)}


def test_the_run_s_own_ranks_are_probed_before_it_trains(whole: Ended) -> None:
    probe = whole.record.probe
    assert probe is not None
    (sweep,) = probe.sweeps
    assert (sweep.link_class, sweep.ranks, sweep.groups) == ("same-pod", 2, 1)
    assert {point.collective for point in sweep.points} == {"all-reduce", "all-gather", "reduce-scatter"}
    assert [(pair.one, pair.other, pair.link_class) for pair in probe.pairs] == [(0, 1, "same-pod")]
    assert [device.rank for device in probe.devices] == [0, 1]
    assert 0.1 < probe.seconds < 2 * CONFIG.probe_s + 1
    assert whole.record.ranks[0].clock.probe_s == pytest.approx(probe.seconds, abs=0.5)
    assert "probe: same-pod, 1 x 2 ranks: " in (whole.folder / "logs" / "rank-00000.log").read_text()


def test_a_run_of_no_steps_probes_proves_its_links_and_ends(tmp_path: Path, cache: Path) -> None:
    links = (LinkExpectation(link_class="same-node", pairs=1, expected=("TCP", "loopback"), forbidden=()),)
    expectations = CONFIG.expectations.model_copy(update={"links": links})
    config = tiny_config(
        steps=0, warmup_steps=0, pods=2, ranks_per_pod=1, topology="cpu-2x1-tcp", expectations=expectations, probe_s=2.0
    )
    ended = Started(config, tmp_path, cache).wait()
    assert ended.exit_code == 0, ended.output
    record = ended.record
    assert (record.status, record.verdict.outcome, record.verdict.reasons) == ("complete", "VALID", ())
    assert (record.data, record.summary.timed_steps, ended.steps()) == (None, 0, [])
    assert record.transports
    assert record.probe is not None
    assert record.probe.sweeps[-1].link_class == "same-node"
    assert {point.size_bytes for point in record.probe.sweeps[-1].points} >= {4096, 16384, 65536}
    assert "complete after step 0 of 0" in ended.output


def test_the_run_saves_at_the_steps_that_the_config_names_and_says_what_that_took(whole: Ended) -> None:
    assert {line.step for line in whole.steps() if line.checkpoint_s > 0} == {4, 8, 12}
    printed = (whole.folder / "logs" / "rank-00000.log").read_text()
    assert "checkpoint-8: saved in " in printed
    assert "complete after step 12 of 12; 3 checkpoints took " in printed


def test_facts_show_where_each_rank_was_and_who_it_spoke_to(whole: Ended) -> None:
    ranks = whole.record.ranks
    assert [(f.rank, f.local_rank, f.pod, f.node) for f in ranks] == [
        (0, 0, 0, "this-machine"),
        (1, 1, 0, "this-machine"),
    ]
    first, second = ranks
    assert "127.0.0.1" in first.addresses
    ends = {(c.local_address, c.remote_address) for c in first.connections}
    assert ends
    assert ends == {(c.remote_address, c.local_address) for c in second.connections}
    assert [s.after_step for s in first.counters] == [2, STEPS]
    sent = [next(i.sent for i in s.interfaces if i.name == "lo") for s in first.counters]
    assert sent[1] - sent[0] > 10 * 2 * parameters(CONFIG.model.architecture)
    assert first.clock.timed_s == pytest.approx(sum(s.seconds for s in whole.steps()[2:]))
    assert 0 < first.clock.bookkeeping_s < 0.1
    assert first.clock.import_s > 0 < first.clock.model_s


def test_the_record_s_summary_follows_from_its_lines(whole: Ended) -> None:
    record = whole.record
    assert record.summary == summarize(record.config, {0: whole.steps(0), 1: whole.steps(1)}, record.ranks)
    assert record.summary.timed_steps == STEPS - 2


def test_one_rank_told_to_stop_stops_all_and_the_run_resumes_with_the_same_losses(
    whole: Ended, tmp_path: Path, cache: Path
) -> None:
    started = Started(CONFIG, tmp_path / "first", cache)
    started.terminate_rank(1, after_step=2)
    interrupted = started.wait()
    assert interrupted.exit_code != 0
    assert "exitcode  : 143" in interrupted.output  # as if SIGTERM had ended it
    assert interrupted.record.status == "interrupted", interrupted.output
    stopped_after = interrupted.steps()[-1].step
    assert 2 < stopped_after < STEPS, "the signal came too late for this test to tell anything"
    assert "interrupted" in " ".join(interrupted.record.verdict.reasons)

    resumed = Started(CONFIG, tmp_path / "second", cache, environment={"TOPOLAB_RESTARTS": "1"}).wait()
    assert resumed.exit_code == 0, resumed.output
    assert (resumed.record.starts, resumed.record.resumed_after_step) == (2, stopped_after)
    assert resumed.record.verdict.outcome == "VALID"
    expected = {step: loss for step, loss in whole.losses().items() if step > stopped_after}
    assert resumed.losses() == expected


def test_two_pods_of_one_rank_train_the_same_as_one_pod_of_two(whole: Ended, tmp_path: Path, cache: Path) -> None:
    links = (LinkExpectation(link_class="same-node", pairs=1, expected=("TCP", "loopback"), forbidden=()),)
    config = tiny_config(
        steps=4,
        pods=2,
        ranks_per_pod=1,
        topology="cpu-2x1-tcp",
        expectations=CONFIG.expectations.model_copy(update={"links": links, "link_rate_bits_per_s": 1e9}),
    )
    two = Started(config, tmp_path, cache).wait()
    assert two.exit_code == 0, two.output
    assert whole.record.link_probe is None
    assert two.record.link_probe is not None
    assert [s.after_step for s in two.record.ranks[0].counters] == [2, 4]
    assert [f.pod for f in two.record.ranks] == [0, 1]
    assert two.record.data == whole.record.data
    # Both schedules decay linearly, to step 4 and to step 12, so only the first step is the same work.
    assert two.losses()[1] == whole.losses()[1]


def test_lines_are_padded_and_a_step_without_targets_has_no_loss(tmp_path: Path, cache: Path) -> None:
    zero = ZERO_3.model_copy(update={"stage": 1})
    recipe = RECIPE.model_copy(
        update={"zero": zero, "micro_batch": 1, "accumulation": 1, "activation_checkpointing": True}
    )
    config = tiny_config(
        data=DataConfig(source="embedded", feed="lines"), recipe=recipe, steps=24, seed=3, on_wrong_link="record"
    )
    ended = Started(config, tmp_path, cache).wait()
    assert ended.exit_code == 0, ended.output
    of_rank = [ended.steps(0), ended.steps(1)]
    blank = [first.real_tokens + second.real_tokens == 2 for first, second in zip(*of_rank, strict=True)]
    assert any(blank)
    assert [line.loss is None for line in of_rank[0]] == blank


def test_a_wrong_link_stops_the_run_after_its_warm_up(tmp_path: Path, cache: Path) -> None:
    links = (LinkExpectation(link_class="same-pod", pairs=1, expected=("SHM",), forbidden=("loopback",)),)
    expectations: Expectations = CONFIG.expectations.model_copy(update={"links": links})
    ended = Started(tiny_config(steps=200, expectations=expectations), tmp_path, cache).wait()
    assert ended.exit_code != 0
    assert "stopped, because the link is wrong: same-pod" in ended.output
    assert ended.record.status == "stopped-wrong-link"
    assert ended.record.verdict.outcome == "INVALID"
    assert [line.phase for line in ended.steps()] == ["warmup"] * 2


def test_a_failed_publish_fails_the_run_and_keeps_its_files(tmp_path: Path, cache: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder is needed")
    ended = Started(tiny_config(), tmp_path, cache, environment={"TOPOLAB_RECORDS": f"file:{blocked}/records"}).wait()
    assert ended.exit_code == 1
    (kept,) = (cache / "records").iterdir()
    assert "can't be published" in ended.output
    assert f"the files are still in {kept}" in ended.output
    assert len((kept / "steps" / "rank-00001.jsonl").read_text().splitlines()) == 6


def test_a_killed_rank_leaves_a_record_that_says_failed(tmp_path: Path, cache: Path) -> None:
    started = Started(tiny_config(steps=500), tmp_path, cache)
    started.kill_rank(1, after_step=3)
    ended = started.wait()
    assert ended.exit_code != 0
    assert ended.record.status == "failed"
    assert ended.record.verdict.outcome == "INVALID"
    assert len(ended.steps(0)) >= 3
    assert "Traceback" in (ended.folder / "logs" / "rank-00000.log").read_text()


def test_another_number_of_ranks_than_planned_is_refused(tmp_path: Path, cache: Path) -> None:
    ended = Started(tiny_config(), tmp_path, cache, ranks_per_pod=1).wait()
    assert ended.exit_code == 1  # torchrun's own; the rank's is 2
    assert "torchrun started 1 ranks (WORLD_SIZE), the config's topology cpu-1x2-local has 2" in ended.output
    assert "exitcode  : 2" in ended.output
    # Its reason ends torchrun's account, so that the last words of a pod's log hold it.
    account = ended.output[ended.output.rindex("traceback :") :]
    assert account.startswith("traceback : torchrun started 1 ranks (WORLD_SIZE)")
