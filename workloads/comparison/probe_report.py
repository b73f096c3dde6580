"""The page of probe-only runs (`steps: 0`): what each link gives, and what that means for the planned step."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from workloads.comparison.compare import Difference, Vary, allowed_differences, arms_of, varied
from workloads.comparison.layout import Page, html_of, markdown_of
from workloads.comparison.probe_figures import LinkFigures, ProbeFigures, Spread, probe_figures
from workloads.comparison.probe_plots import probe_plots
from workloads.comparison.records import Run
from workloads.comparison.sections import UNKNOWN, Cell, Column, Row, Table
from workloads.comparison.verification import recomputed
from workloads.comparison.wording import NOTHING, TIMES, rate, seconds, significant, size


@dataclass(frozen=True, kw_only=True)
class ProbeReport(Page):
    """All that the page says."""

    figures: tuple[ProbeFigures, ...]


def is_probe_only(run: Run) -> bool:
    """Whether the run was to train nothing."""
    return run.record.config.steps == 0 and run.record.config.command is None


def build_probe_report(runs: Sequence[Run], *, vary: Vary | None = None, allow: Collection[str] = ()) -> ProbeReport:
    """Work out the page; ValueError where runs that train are among them, or differ in what must be equal."""
    trained = [run.record.run_id for run in runs if not is_probe_only(run)]
    if trained:
        raise ValueError(f"{', '.join(trained)}: trained, and others only probed; report the two kinds apart")
    checked = [recomputed(run) for run in runs]
    grouped = arms_of(checked)
    differences = allowed_differences(checked, vary or varied(grouped), allow)
    arms = tuple(sorted(map(probe_figures, grouped), key=lambda arm: (-(arm.ring_bytes_per_s or 0.0), arm.name)))
    tables = (_links_table(arms), _steps_table(arms), _pairs_table(arms), _devices_table(arms))
    return ProbeReport(
        figures=arms,
        title=_title(checked, arms),
        headline=_headline(arms),
        others=(),
        standing=_standing(arms),
        facts=_facts(checked[0]),
        notices=tuple(_notices(arms, differences)),
        reasons=tuple((arm.name, arm.outcome, arm.reasons) for arm in arms if arm.reasons),
        arms=_arms_table(arms),
        tables=tuple(table for table in tables if table.rows),
        method=_METHOD,
    )


def probe_html(report: ProbeReport) -> str:
    """The page, style and plots inside."""
    return html_of(report, probe_plots(report.figures))


def probe_markdown(report: ProbeReport) -> str:
    """The same sentences and tables, without the plots."""
    return markdown_of(report)


_METHOD = (
    "Bandwidth is nccl-tests' bus bandwidth: bytes of the tensor, times 2(n-1)/n for all-reduce and (n-1)/n for "
    "all-gather and reduce-scatter of n ranks, over the seconds of the slowest rank. It can be held against the rate "
    "of a link whatever n is. gloo's reduce-scatter sends an all-reduce's bytes, so it shows half of its link.",
    "Each link class is swept in groups whose ring crosses no wider link, all groups at once; pairs of ranks exchange "
    "messages both ways in rounds, so that they share links as training does.",
    "The planned step is predicted twice: with the assumed rate of its slowest link, as the plan had it, and with the "
    "ring that was measured; the assumptions about compute stay.",
    "VALID: every link class showed an expected transport and none that is forbidden, on the planned number of nodes "
    "and devices, and the counters saw what the sweeps must have sent. UNPROVEN: nothing was wrong, but evidence is "
    "missing.",
)


def _title(runs: Sequence[Run], arms: Sequence[ProbeFigures]) -> str:
    names = ", ".join(dict.fromkeys(run.record.config.experiment for run in runs))
    return f"{names}: {len(arms)} {'arm' if len(arms) == 1 else 'arms'} probed"


def _headline(arms: Sequence[ProbeFigures]) -> str:
    known = [(arm, reached) for arm in arms if (reached := arm.ring_bytes_per_s)]
    if not known:
        return "No run counts, so no bandwidth is shown: see the reasons below."
    (fastest, most), (slowest, least) = known[0], known[-1]
    if len(known) == 1:
        return f"In arm {fastest.name} a ring over all ranks carries {_rate(most)}{_in_steps(fastest)}."
    return (
        f"In arm {slowest.name} a ring over all ranks carries {_rate(least)}, in {fastest.name} {_rate(most)}: "
        f"{significant(most / least)}{TIMES} as much{_in_steps(slowest)}."
    )


def _in_steps(arm: ProbeFigures) -> str:
    step = arm.probed_step_s
    if step is None:
        return ""
    return f"; the planned step would take {seconds(step.expected)} there [{seconds(step.low)} to {seconds(step.high)}]"


def _standing(arms: Sequence[ProbeFigures]) -> str:
    others = [f"{arm.name} is {arm.outcome}" for arm in arms if arm.outcome != "VALID"]
    return f"{len(arms) - len(others)} of {len(arms)} arms are VALID{': ' if others else ''}{', '.join(others)}."


def _facts(run: Run) -> str:
    config = run.record.config
    return (
        f"Nothing was trained (steps: 0). The step that is predicted: {config.model.name}, recipe "
        f"{config.recipe.name}, {config.token_slots_per_step:,} token slots in sequences of {config.sequence_length:,}."
    )


def _notices(arms: Sequence[ProbeFigures], differences: Sequence[Difference]) -> list[str]:
    slow = [f"{arm.name}: {sentence}." for arm in arms for sentence in arm.slow]
    return [*slow, *(f"Allowed difference: {difference}." for difference in differences)]


def _arms_table(arms: Sequence[ProbeFigures]) -> Table:
    columns = (
        Column("Arm"),
        Column("Verdict"),
        Column("Link class"),
        *(Column(name, numeric=True) for name in ("All-reduce", "All-gather", "Reduce-scatter", "Smallest all-reduce")),
        Column("Rate dialled", numeric=True),
    )
    rows = [row for arm in arms for row in (_link_rows(arm) or [_no_row(arm)])]
    return Table(
        "What the links carry",
        "Bus bandwidth of each collective's largest message, and how long the smallest one takes; a line a link class.",
        columns,
        tuple(rows),
    )


def _link_rows(arm: ProbeFigures) -> list[Row]:
    return [(_name(arm), Cell(arm.outcome, badge=True), *_link_cells(arm, link)) for link in reversed(arm.links)]


def _link_cells(arm: ProbeFigures, link: LinkFigures) -> tuple[Cell, ...]:
    across = link.link_class != "same-pod" and arm.rate_bits_per_s is not None
    return (
        Cell(link.link_class, f"{link.groups} x {link.ranks} ranks" if link.groups > 1 else f"{link.ranks} ranks"),
        Cell(_rate(link.large("all-reduce"))),
        Cell(_rate(link.large("all-gather"))),
        Cell(_rate(link.large("reduce-scatter"))),
        Cell(seconds(link.smallest_s)),
        Cell(rate(arm.rate_bits_per_s) if across and arm.rate_bits_per_s else NOTHING),
    )


def _no_row(arm: ProbeFigures) -> Row:
    return (_name(arm), Cell(arm.outcome, badge=True), *[Cell(NOTHING)] * 6)


def _name(arm: ProbeFigures) -> Cell:
    return Cell(arm.name, "" if arm.topology == arm.name else arm.topology)


def _links_table(arms: Sequence[ProbeFigures]) -> Table:
    rows = [
        (
            Cell(arm.name),
            Cell(link.link_class, f"{link.pairs} {'pair' if link.pairs == 1 else 'pairs'}"),
            Cell(" or ".join(link.expected) or "none"),
            Cell(", ".join(f"{name}: {pairs}" for name, pairs in link.seen.items()) or "no evidence", link.example),
        )
        for arm in arms
        for link in arm.evidence
    ]
    labels = ("Arm", "Link class", "Expected", "Used, in directed pairs")
    columns = tuple(Column(label) for label in labels)
    return Table("Which links carried it", "From NCCL's own log, or for gloo from connections.", columns, tuple(rows))


def _steps_table(arms: Sequence[ProbeFigures]) -> Table:
    rows = [
        (Cell(arm.name), Cell(*_range(arm.predicted_step_s)), Cell(*_range(arm.probed_step_s)))
        for arm in arms
        if arm.probed_step_s is not None
    ]
    columns = (
        Column("Arm"),
        Column("As planned, with assumed rates", numeric=True),
        Column("With the ring that was measured", numeric=True),
    )
    text = "Seconds of one optimizer step of the run that the plan states, had it been trained."
    return Table("What it means for the step", text, columns, tuple(rows))


def _range(step: object) -> tuple[str, str]:
    low, expected, high = (getattr(step, name, None) for name in ("low", "expected", "high"))
    return seconds(expected), "" if low is None else f"{seconds(low)} to {seconds(high)}"


def _pairs_table(arms: Sequence[ProbeFigures]) -> Table:
    rows = [
        (Cell(arm.name), Cell(name), *(Cell(_rate(value)) for value in (spread.low, spread.median, spread.high)))
        for arm in arms
        for name, spread in arm.pairs.items()
    ]
    columns = (
        Column("Arm"),
        Column("Link class"),
        *(Column(c, numeric=True) for c in ("Slowest pair", "Median", "Fastest")),
    )
    return Table("Pairs of ranks", "Each way, both ways at once.", columns, tuple(rows))


def _devices_table(arms: Sequence[ProbeFigures]) -> Table:
    rows = [
        (
            Cell(arm.name),
            Cell(*_spread(arm.matmul_flops_per_s, 1e12, "TFLOP/s")),
            Cell(*_spread(arm.to_device_bytes_per_s, 1e9, "GB/s")),
            Cell(*_spread(arm.to_host_bytes_per_s, 1e9, "GB/s")),
        )
        for arm in arms
        if arm.matmul_flops_per_s is not None
    ]
    labels = ("Matrix products", "Host to device", "Device to host")
    columns = (Column("Arm"), *(Column(label, numeric=True) for label in labels))
    text = "Of each rank, all ranks at once: median, and lowest to highest. Without a GPU: of its cores and memory."
    return Table("Devices", text, columns, tuple(rows))


def _spread(spread: Spread | None, scale: float, unit: str) -> tuple[str, str]:
    if spread is None:
        return UNKNOWN, ""
    low, median, high = (significant(value / scale) for value in (spread.low, spread.median, spread.high))
    return f"{median} {unit}", f"{low} to {high}"


def _rate(bytes_per_s: float | None) -> str:
    return NOTHING if bytes_per_s is None else f"{size(bytes_per_s)}/s"
