"""Figures of the timed window, from lines and counters that can be checked by hand."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trainer.launching import TINY, tiny_config
from trainer.config import DataConfig, ExpectedBytes
from trainer.flops import flops_per_token
from trainer.record import Clock, CounterSample, InterfaceBytes, Phase, RankFacts, StepLine
from trainer.summary import percentile, step_seconds, summarize, timed_steps

CONFIG = tiny_config()


def _line(step: int, seconds: float = 1.0, phase: Phase = "timed", **changes: Any) -> StepLine:
    line = StepLine(
        step=step,
        phase=phase,
        seconds=seconds,
        loss=float(10 - step),
        gradient_norm=1.0,
        finite=True,
        real_tokens=128,
        padded_tokens=0,
        data_wait_s=0.1,
        checkpoint_s=0.0,
        evaluation_s=0.0,
    )
    return line.model_copy(update=changes)


def _facts(
    rank: int, pod: int, sent: tuple[int, ...], kind: str = "interface", lo: int = 0, local_rank: int = 0
) -> RankFacts:
    samples = tuple(
        CounterSample(
            after_step=step,
            unix_s=float(step),
            interfaces=(
                InterfaceBytes(name="lo", kind="interface", sent=lo * step, received=0),
                InterfaceBytes.model_validate({"name": "dev0", "kind": kind, "sent": value, "received": 0}),
            ),
        )
        for step, value in enumerate(sent)
    )
    clock = Clock(**dict.fromkeys(Clock.model_fields, 0.0))
    return RankFacts(
        rank=rank,
        local_rank=local_rank,
        pod=pod,
        hostname=f"pod-{pod}",
        node="n",
        addresses=(),
        device=None,
        efa_devices=(),
        nccl_nics_found=None,
        connections=(),
        counters=samples,
        peak_allocated_bytes=None,
        peak_reserved_bytes=None,
        peak_resident_bytes=0,
        omp_threads=1,
        clock=clock,
    )


def _expecting(counter: str) -> Any:
    expected = ExpectedBytes.model_validate(
        {
            "counter": counter,
            "per_pod_and_step": 1.0,
            "formula": "",
            "relative_tolerance": 0.1,
            "absolute_tolerance_per_step": 0.0,
        }
    )
    return tiny_config(expectations=CONFIG.expectations.model_copy(update={"bytes_sent": expected}))


def test_a_step_takes_as_long_as_its_slowest_rank() -> None:
    steps = {0: [_line(1, 1.0), _line(2, 5.0)], 1: [_line(1, 3.0), _line(2, 2.0)]}
    assert step_seconds(timed_steps(steps)) == [3.0, 5.0]
    assert summarize(CONFIG, steps, ()).step_s_mean == 4.0


def test_warm_up_and_steps_that_a_rank_lacks_are_left_out() -> None:
    steps = {0: [_line(1, 99.0, "warmup"), _line(2), _line(3)], 1: [_line(1, 99.0, "warmup"), _line(2)]}
    summary = summarize(CONFIG, steps, ())
    assert (summary.timed_steps, summary.step_s_mean) == (1, 1.0)


def test_throughput_counts_all_ranks_and_padding_apart() -> None:
    lines = [_line(3, 2.0, real_tokens=100, padded_tokens=300)]
    summary = summarize(CONFIG, {0: lines, 1: lines}, ())
    assert summary.real_tokens_per_s == 200 / 2.0
    assert summary.slots_per_s == 800 / 2.0
    assert summary.data_wait_share == pytest.approx(0.05)


def test_packed_flops_attend_to_the_whole_block_and_mfu_needs_a_known_peak() -> None:
    steps = {0: [_line(3)], 1: [_line(3)]}
    expected = 256 * flops_per_token(TINY, CONFIG.sequence_length) / 2
    unknown = summarize(CONFIG, steps, ())
    assert unknown.model_flops_per_s_per_rank == pytest.approx(expected)
    assert unknown.mfu is None
    known = summarize(CONFIG.model_copy(update={"peak_flops_per_s": 10 * expected}), steps, ())
    assert known.mfu == pytest.approx(0.1)


def test_lines_attend_to_as_many_tokens_as_they_hold() -> None:
    config = tiny_config(data=DataConfig(source="embedded", feed="lines"))
    lines = [_line(3, real_tokens=40, padded_tokens=88)]
    summary = summarize(config, {0: lines, 1: lines}, ())
    per_line = 80 / config.sequences_per_step
    assert summary.model_flops_per_s_per_rank == pytest.approx(80 * flops_per_token(TINY, per_line) / 2)


def test_first_and_last_loss_skip_steps_without_targets() -> None:
    lines = [_line(1, loss=None), _line(2, loss=4.0), _line(3, loss=3.0), _line(4, loss=None)]
    summary = summarize(CONFIG, {0: lines}, ())
    assert (summary.first_loss, summary.last_loss) == (4.0, 3.0)


def test_nothing_timed_gives_no_figures() -> None:
    summary = summarize(_expecting("interface"), {0: [_line(1, phase="warmup")]}, [_facts(0, 0, (0, 10))])
    assert summary.timed_steps == 0
    assert set(summary.model_dump(exclude={"timed_steps"}).values()) == {None}
    assert summarize(CONFIG, {}, ()).timed_steps == 0


def test_bytes_are_the_median_pod_s_between_the_ends_of_the_window_without_lo() -> None:
    steps = {0: [_line(1), _line(2)]}
    facts = [_facts(0, 0, (100, 300), lo=7), _facts(1, 1, (0, 400)), _facts(2, 2, (0, 40))]
    assert summarize(_expecting("interface"), steps, facts).sent_bytes_per_pod_and_step == 200


def test_what_lies_between_two_stretches_is_neither_counted_nor_divided_by() -> None:
    facts = [_facts(0, 0, (0, 10, 900, 930))]
    assert summarize(_expecting("interface"), {0: [_line(1)]}, facts).sent_bytes_per_pod_and_step == (10 + 30) / 2


def test_a_device_that_only_one_end_knows_is_missing_evidence_and_not_its_whole_life_s_bytes() -> None:
    facts = _facts(0, 0, (0, 50))
    first = facts.counters[0].model_copy(update={"interfaces": facts.counters[0].interfaces[:1]})
    late = facts.model_copy(update={"counters": (first, facts.counters[1])})
    assert summarize(_expecting("interface"), {0: [_line(1)]}, [late]).sent_bytes_per_pod_and_step is None


def test_one_rank_speaks_for_its_pod() -> None:
    facts = [_facts(0, 0, (0, 10)), _facts(1, 0, (0, 99), local_rank=1)]
    assert summarize(_expecting("interface"), {0: [_line(1)]}, facts).sent_bytes_per_pod_and_step == 10


def test_bytes_are_taken_from_the_counter_that_the_plan_names() -> None:
    steps = {0: [_line(1)]}
    assert summarize(_expecting("efa"), steps, [_facts(0, 0, (0, 8), "efa")]).sent_bytes_per_pod_and_step == 8
    assert summarize(_expecting("efa"), steps, [_facts(0, 0, (0, 8))]).sent_bytes_per_pod_and_step is None
    assert summarize(CONFIG, steps, [_facts(0, 0, (0, 8))]).sent_bytes_per_pod_and_step is None
    assert summarize(_expecting("efa"), steps, [_facts(0, 0, (0,))]).sent_bytes_per_pod_and_step is None


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0, 100))
def test_percentiles_are_numpy_s_default(values: list[float], percent: float) -> None:
    assert percentile(values, percent) == pytest.approx(float(np.percentile(values, percent)), abs=1e-6)


def test_there_is_no_percentile_of_nothing() -> None:
    assert percentile([], 50) is None
