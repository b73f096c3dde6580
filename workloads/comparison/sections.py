"""The tables of a report, made once and shown alike in HTML and in Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workloads.comparison.compare import Comparison
from workloads.comparison.figures import CLOCK_PARTS, ArmFigures, devices, sent_allowed
from workloads.comparison.records import Run
from workloads.comparison.wording import NOTHING, bounds, count, rate, seconds, share, size, times, usd

UNKNOWN = "n/a"

CAPACITY = {
    "onDemand": "on demand",
    "spot": "spot",
    "reservation": "reserved",
    "capacityBlock": "capacity block",
    "local": "local",
}


@dataclass(frozen=True)
class Cell:
    """One cell: its text, a smaller note under it, and whether the text is a verdict."""

    text: str
    note: str = ""
    badge: bool = False


@dataclass(frozen=True)
class Column:
    """One column: figures stand right."""

    label: str
    numeric: bool = False


Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """One table with its heading, a line of introduction and its rows."""

    heading: str
    introduction: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


def arms_table(arms: Sequence[ArmFigures]) -> Table:
    """Time and speed of each arm; money where a price is known."""
    priced = any(arm.usd_per_1000_steps is not None for arm in arms)
    columns = [
        Column("Arm"),
        Column("Verdict"),
        Column("Step", numeric=True),
        Column("Against baseline", numeric=True),
        Column("Real tokens/s", numeric=True),
        Column("Padding/s", numeric=True),
        Column("MFU", numeric=True),
        Column("Data wait", numeric=True),
    ]
    if priced:
        columns.append(Column("Cost of 1,000 steps", numeric=True))
    return Table(
        "Arms",
        "A step runs from the end of one optimizer step to the end of the next and is the slowest rank's; below it "
        "its 10th to 90th percentile, and below a ratio its 95% interval. "
        "Real tokens are counted apart from padding.",
        tuple(columns),
        tuple(_arm_cells(arm, priced) for arm in arms),
    )


def proof_table(arms: Sequence[ArmFigures]) -> Table:
    """What each link class was expected to use and what it was seen to use."""
    rows = [
        (
            Cell(arm.name),
            Cell(link.link_class, f"{link.pairs} {'pair' if link.pairs == 1 else 'pairs'}"),
            Cell(" or ".join(link.expected) or "none"),
            Cell(_seen(link.seen), link.example),
            Cell(_dialled(arm) if link.link_class != "same-pod" else NOTHING),
        )
        for arm in arms
        for link in arm.links
    ]
    labels = ("Arm", "Link class", "Expected", "Used, in directed pairs", "Rate dialled")
    return Table(
        "Which links carried it",
        "From NCCL's own log, or for gloo from each rank's connections. A ring needs its neighbours only, so "
        "not every pair of ranks appears.",
        tuple(Column(label) for label in labels),
        tuple(rows),
    )


def bytes_table(arms: Sequence[ArmFigures]) -> Table:
    """Bytes that a pod sent in a step against the backend's formula."""
    rows = [_byte_cells(arm) for arm in arms if arm.expected_bytes is not None]
    columns = (
        Column("Arm"),
        Column("Measured", numeric=True),
        Column("Predicted", numeric=True),
        Column("Difference", numeric=True),
        Column("Accepted", numeric=True),
        Column("Wire time at the rate", numeric=True),
        Column("Formula"),
    )
    return Table(
        "Bytes sent per pod and step",
        "Counters of the pod's own devices over the timed steps, lo left out; median over pods and runs. In the "
        "formula S is one bf16 copy of the parameters and f = (N-1)/N of N ranks.",
        columns,
        tuple(rows),
    )


def prediction_table(arms: Sequence[ArmFigures]) -> Table:
    """The step time that was predicted before the run, its parts, and what was measured."""
    rows = [_prediction_cells(arm) for arm in arms if arm.predicted is not None]
    columns = (
        Column("Arm"),
        Column("Predicted step", numeric=True),
        Column("Measured step", numeric=True),
        Column("Measured / predicted", numeric=True),
        Column("Parts of the prediction"),
    )
    return Table(
        "Predicted and measured time",
        "As it was said before the run. A prediction is a range; a measurement outside of it says that a rate or a "
        "formula is off.",
        columns,
        tuple(rows),
    )


def rental_table(arms: Sequence[ArmFigures]) -> Table:
    """How the nodes of each arm are paid for, where they are rented at all."""
    columns = (
        Column("Arm"),
        Column("Nodes", numeric=True),
        Column("Capacity"),
        Column("Region"),
        Column("USD per node and hour", numeric=True),
        Column("Price from"),
    )
    rows = [_rental_cells(arm) for arm in arms if arm.rental is None or arm.rental.capacity != "local"]
    return Table(
        "What the nodes cost",
        "Nodes of the plan, at the price that the record holds; system nodes, storage and waiting are not counted.",
        columns,
        tuple(rows),
    )


def clock_table(arms: Sequence[ArmFigures]) -> Table:
    """Seconds of each part of a rank's wall time."""
    parts = [part for part in CLOCK_PARTS if any(part in arm.clock_s for arm in arms)]
    columns = (
        Column("Arm"),
        *(Column(part.capitalize(), numeric=True) for part in parts),
        Column("Together", numeric=True),
    )
    rows = [
        (
            Cell(arm.name),
            *(Cell(seconds(arm.clock_s.get(part))) for part in parts),
            Cell(seconds(sum(arm.clock_s.values()))),
        )
        for arm in arms
    ]
    return Table(
        "Parts of the clock",
        "Mean over ranks and runs. Bookkeeping is the trainer's own record keeping inside the timed window.",
        columns,
        tuple(rows),
    )


def environment_table(comparison: Comparison) -> Table:
    """What differed between the arms' environments, each value with its arms; equal facts are left out."""
    rows = []
    for name in _environment(comparison.arms[0].runs[0]):
        by_value: dict[str, list[str]] = {}
        for arm in comparison.arms:
            for run in arm.runs:
                names = by_value.setdefault(_environment(run).get(name, "absent"), [])
                if arm.name not in names:
                    names.append(arm.name)
        if len(by_value) > 1:
            shown = "; ".join(f"{value} ({', '.join(names)})" for value, names in by_value.items())
            rows.append((Cell(name), Cell(shown)))
    return Table(
        "What differed between the arms",
        "Everything else that the records hold about versions, hardware and settings was equal.",
        (Column("Fact"), Column("Values")),
        tuple(rows),
    )


def runs_table(comparison: Comparison) -> Table:
    """Every run that was read."""
    columns = (
        Column("Run"),
        Column("Arm"),
        Column("Verdict"),
        Column("Started"),
        Column("Status"),
        Column("Timed steps", numeric=True),
        Column("Median step", numeric=True),
        Column("First and last loss", numeric=True),
    )
    rows = [_run_cells(arm.name, run) for arm in comparison.arms for run in arm.runs]
    return Table("Runs", "Each figure can be recomputed from the record's raw lines.", columns, tuple(rows))


def _arm_cells(arm: ArmFigures, priced: bool) -> tuple[Cell, ...]:
    spread = f"{seconds(arm.step_s_p10)} to {seconds(arm.step_s_p90)}" if arm.step_s is not None else ""
    counted = "" if arm.runs == arm.runs_counted else f"{arm.runs_counted} of {arm.runs} runs count"
    cells = [
        Cell(arm.name, "" if arm.topology == arm.name else arm.topology),
        Cell(arm.outcome, counted, badge=True),
        Cell(seconds(arm.step_s), spread),
        Cell("baseline" if arm.is_baseline else times(arm.ratio), "" if arm.ratio is None else bounds(arm.ratio)),
        Cell(count(arm.real_tokens_per_s)),
        Cell(count(arm.padded_slots_per_s)),
        Cell(UNKNOWN if arm.mfu is None else share(arm.mfu)),
        Cell(share(arm.data_wait_share)),
    ]
    if priced:
        per_token = arm.usd_per_million_real_tokens
        note = _rented(arm) if per_token is None else f"{usd(per_token)} per million real tokens; {_rented(arm)}"
        cells.append(Cell(usd(arm.usd_per_1000_steps), note))
    return tuple(cells)


def _seen(seen: Mapping[str, int]) -> str:
    return ", ".join(f"{transport}: {pairs}" for transport, pairs in seen.items()) or "no evidence"


def _dialled(arm: ArmFigures) -> str:
    return NOTHING if arm.link_rate_bits_per_s is None else rate(arm.link_rate_bits_per_s)


def _byte_cells(arm: ArmFigures) -> tuple[Cell, ...]:
    expected = arm.expected_bytes
    assert expected is not None
    predicted = expected.per_pod_and_step
    known = arm.sent_bytes is not None and predicted > 0
    difference = f"{(arm.sent_bytes or 0.0) / predicted - 1:+.1%}" if known else NOTHING
    low, high = sent_allowed(expected)
    return (
        Cell(arm.name),
        Cell(size(arm.sent_bytes)),
        Cell(size(predicted)),
        Cell(difference),
        Cell(f"{size(low)} to {size(high)}"),
        Cell(seconds(arm.wire_s)),
        Cell(expected.formula),
    )


def _prediction_cells(arm: ArmFigures) -> tuple[Cell, ...]:
    predicted = arm.predicted
    assert predicted is not None
    step = predicted.step_s
    off = NOTHING if arm.step_s is None else f"{arm.step_s / step.expected:.2f}"
    inside = "" if arm.step_s is None or step.low <= arm.step_s <= step.high else "outside the range"
    parts = ", ".join(f"{name} {seconds(value)}" for name, value in predicted.parts_s.items() if value)
    link = f"slowest link: {predicted.slowest_link}"
    return (
        Cell(arm.name),
        Cell(seconds(step.expected), f"{seconds(step.low)} to {seconds(step.high)}"),
        Cell(seconds(arm.step_s)),
        Cell(off, inside),
        Cell(parts or NOTHING, link),
    )


def _rental_cells(arm: ArmFigures) -> tuple[Cell, ...]:
    rental = arm.rental
    if rental is None:
        return (Cell(arm.name), Cell(str(arm.nodes)), Cell("differs between its runs"), *[Cell(NOTHING)] * 3)
    return (
        Cell(arm.name),
        Cell(str(arm.nodes)),
        Cell(CAPACITY[rental.capacity]),
        Cell(rental.region or NOTHING),
        Cell(usd(rental.usd_per_node_hour) if rental.usd_per_node_hour is not None else UNKNOWN),
        Cell(rental.price_source or NOTHING),
    )


def _rented(arm: ArmFigures) -> str:
    if arm.rental is None:
        return "rented differently from run to run"
    return " in ".join(part for part in (CAPACITY[arm.rental.capacity], arm.rental.region) if part)


def _environment(run: Run) -> dict[str, str]:
    """Facts that may explain a difference, whether or not they may differ."""
    record, config, ranks = run.record, run.record.config, run.record.ranks
    return {
        "topology": config.topology,
        "machine": config.machine,
        "pods": str(config.pods),
        "ranks per pod": str(config.ranks_per_pod),
        "recipe": config.recipe.name,
        "micro-batch": str(config.recipe.micro_batch),
        "accumulation": str(config.recipe.accumulation),
        "accelerators": devices(ranks),
        "nodes": ", ".join(sorted({facts.node for facts in ranks})) or NOTHING,
        "link shaping": record.link_shaping,
        "OMP threads a rank": ", ".join(sorted({str(facts.omp_threads) for facts in ranks})) or NOTHING,
        "CPUs a rank": f"{config.cpus_per_rank:g}",
        "memory a rank": f"{config.memory_gib_per_rank:g} GiB",
        "image": config.image or "none (this machine's python)",
        "checkpoint every": str(config.checkpoint_every_steps or "never"),
        **{f"version of {name}": version for name, version in sorted(record.versions.items())},
    }


def _start(run: Run) -> str:
    """Which start of its job the record is of, where it is not the first."""
    record = run.record
    return "" if record.starts == 1 else f"start {record.starts}, from step {record.resumed_after_step + 1}"


def _run_cells(arm: str, run: Run) -> tuple[Cell, ...]:
    record, summary = run.record, run.record.summary
    losses = [NOTHING if loss is None else f"{loss:.4f}" for loss in (summary.first_loss, summary.last_loss)]
    return (
        Cell(record.run_id),
        Cell(arm),
        Cell(record.verdict.outcome, badge=True),
        Cell(record.started_at[:19].replace("T", " ")),
        Cell(record.status, _start(run)),
        Cell(str(summary.timed_steps)),
        Cell(seconds(summary.step_s_median)),
        Cell(" to ".join(losses)),
    )
