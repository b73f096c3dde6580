"""One self-contained page (HTML, and Markdown) from run records; the same bytes at each build.

Nothing on it is typed by hand, nothing is fetched, and no time of now stands on it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from trainer.bandwidth import slow_ones
from workloads.comparison.compare import LOSS_TOLERANCE, Comparison, Vary, compare
from workloads.comparison.figures import ArmFigures, figures
from workloads.comparison.headline import headline, other_findings, standing
from workloads.comparison.layout import Page, html_of, markdown_of
from workloads.comparison.plots import plots
from workloads.comparison.ranks import late_ranks, ranks_table
from workloads.comparison.records import Run
from workloads.comparison.sections import (
    Table,
    arms_table,
    bytes_table,
    clock_table,
    environment_table,
    prediction_table,
    proof_table,
    rental_table,
    runs_table,
)
from workloads.comparison.statistics import Spread
from workloads.comparison.verification import recomputed
from workloads.comparison.wording import count, share


@dataclass(frozen=True, kw_only=True)
class Report(Page):
    """All that the page says; `html` and `markdown` lay it out, and `html` draws the plots."""

    comparison: Comparison
    figures: tuple[ArmFigures, ...]


def build_report(
    runs: Sequence[Run],
    *,
    vary: Vary | None = None,
    allow: Collection[str] = (),
) -> Report:
    """Compare the runs, as their raw lines tell them, and work out the page.

    ValueError where the runs can't be compared (see `compare`).
    """
    comparison = compare([recomputed(run) for run in runs], vary, allow)
    arms = figures(comparison)
    return Report(
        comparison=comparison,
        figures=arms,
        title=_title(comparison),
        headline=headline(arms),
        others=tuple(other_findings(arms)),
        standing=standing(arms),
        facts=_facts(comparison),
        notices=tuple(notices(comparison)),
        reasons=tuple((arm.name, arm.outcome, arm.reasons) for arm in arms if arm.reasons),
        arms=arms_table(arms),
        tables=_tables(comparison, arms),
        method=tuple(_method(comparison)),
    )


def notices(comparison: Comparison) -> list[str]:
    """What a reader must know before believing the figures."""
    found = [f"Allowed difference: {difference}." for difference in comparison.allowed]
    if comparison.loss_difference is not None and comparison.loss_difference > LOSS_TOLERANCE:
        found.append(
            f"The losses differ by {share(comparison.loss_difference)} on average, more than the "
            f"{share(LOSS_TOLERANCE)} that is tolerated; this was allowed by name."
        )
    if comparison.uncompared_losses:
        found.append(
            "Losses could not be compared, because no timed step has a loss in both: "
            f"{', '.join(comparison.uncompared_losses)} against the baseline."
        )
    found += _slow(comparison)
    if any(not scatter.degrees_of_freedom for scatter in comparison.scatter.values()):
        found.append(
            "Each arm ran once, so the intervals hold the scatter of steps within a run only; "
            "another run may differ by more."
        )
    return found


def _slow(comparison: Comparison) -> list[str]:
    """What holds an arm up whatever its link: a device that was probed slow beside its like, a rank without data."""
    found = [
        f"{arm.name}: {sentence}, when the ranks of {run.record.run_id} were probed."
        for arm in comparison.arms
        for run in arm.runs
        if run.record.probe is not None
        for sentence in slow_ones(run.record.probe, run.record.config.backend)
    ]
    found += [
        f"{arm.name}: rank {rank} of {run.record.run_id} waits for its data, and the others for it."
        for arm in comparison.arms
        for run in arm.counted
        for rank in late_ranks(run)
    ]
    return list(dict.fromkeys(found))


def html(report: Report) -> str:
    """The page, style and plots inside."""
    return html_of(report, plots(report.comparison, report.figures))


def markdown(report: Report) -> str:
    """The same sentences and tables, without the plots."""
    return markdown_of(report)


def _title(comparison: Comparison) -> str:
    experiments = dict.fromkeys(arm.config.experiment for arm in comparison.arms)
    runs = sum(len(arm.runs) for arm in comparison.arms)
    arms = len(comparison.arms)
    names = ", ".join(experiments)
    return f"{names}: {arms} {'arm' if arms == 1 else 'arms'}, {runs} {'run' if runs == 1 else 'runs'}"


def _facts(comparison: Comparison) -> str:
    first = comparison.arms[0].runs[0].record
    config = first.config
    if config.command is not None:
        return (
            f"A job that isn't topolab's, under trainer.prove: {' '.join(config.command)}. {config.steps} steps of "
            f"which {config.warmup_steps} are warm-up, as it told of them. What varies: {comparison.vary} (key "
            f"{comparison.key})."
        )
    return (
        f"Model {config.model.name} ({count(first.model_parameters)} parameters), data {config.data.source} fed as "
        f"{config.data.feed}, {count(config.token_slots_per_step)} token slots a step in sequences of "
        f"{count(config.sequence_length)}, {config.steps} steps of which {config.warmup_steps} are warm-up, "
        f"seed {config.seed}. What varies: {comparison.vary}. All else that shapes the work is equal "
        f"(key {comparison.key})."
    )


def _tables(comparison: Comparison, arms: Sequence[ArmFigures]) -> tuple[Table, ...]:
    tables = (
        proof_table(arms),
        bytes_table(arms),
        prediction_table(arms),
        rental_table(arms),
        clock_table(arms),
        ranks_table(comparison),
        environment_table(comparison),
        runs_table(comparison),
    )
    return tuple(table for table in tables if table.rows)


def _method(comparison: Comparison) -> list[str]:
    baseline = (
        f"The baseline is {comparison.baseline.name}: the fastest arm that is VALID, or the fastest UNPROVEN "
        "one where none is. INVALID runs show no ratio."
        if comparison.baseline
        else "There is no baseline, because no run counts."
    )
    lines = [baseline, *_interval_method(comparison)]
    if comparison.loss_difference is not None:
        difference = comparison.loss_difference
        found = f"differ from the baseline's by at most {share(difference)} on average"
        lines.append(
            f"Losses over the timed steps {found if difference else 'are equal to the last digit'}; "
            f"{share(LOSS_TOLERANCE)} is tolerated, since bf16 rounds by up to 0.4% and another order of "
            "summation rounds differently."
        )
    lines.append(
        "VALID: every link class showed an expected transport and none that is forbidden, on the planned "
        "number of nodes and devices, all steps are there with equal finite losses, and the counters agree "
        "with the formula. UNPROVEN: nothing was wrong, but evidence is missing."
    )
    return lines


def _interval_method(comparison: Comparison) -> list[str]:
    if not comparison.scatter:
        return []
    typical = (
        "An arm's step is the geometric mean of its runs' median steps. Runs are the units, not steps: "
        "steps of one run share its machine and its neighbours."
    )
    if not any(scatter.degrees_of_freedom for scatter in comparison.scatter.values()):
        return [typical, "Without repeats the 95% intervals come from a block bootstrap of each run's steps."]
    found = "; ".join(_scatter(name, scatter) for name, scatter in comparison.scatter.items())
    return [
        typical,
        "The 95% intervals are Student's t on the log scale. The scatter of runs around their arm comes from "
        "the repeats of the two arms compared, and is never below the scatter of the steps within the runs "
        f"(block bootstrap): {found}.",
    ]


def _scatter(name: str, scatter: Spread) -> str:
    source = ", estimated from all arms" if scatter.whole_experiment else ""
    freedom = scatter.degrees_of_freedom
    return f"{name} {share(scatter.standard_deviation)} with {freedom} degrees of freedom{source}"
