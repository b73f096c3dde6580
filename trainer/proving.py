"""From what was seen of a wrapped job, pod by pod, to the record of its run."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from trainer import counters, hardware, publish
from trainer.config import TrainConfig
from trainer.contract import Contract
from trainer.distributed import PodPlace
from trainer.facts import between_ranks, nics_found, transports_seen
from trainer.marks import Mark, step_lines
from trainer.rank_processes import RankProcess
from trainer.record import Clock, RankFacts, RunRecord, Status, StepLine
from trainer.summary import summarize
from trainer.verdict import Start, judge
from trainer.wrapped_job import Seen, WrappedJob

INTERRUPTED = 143


class Part(Contract):
    """What one pod saw."""

    exit_code: int
    ranks: tuple[RankFacts, ...]
    steps: dict[int, tuple[StepLine, ...]]
    """By rank; a rank that told of none has none."""
    nccl_logs: dict[int, str]
    output: str


def part_of(config: TrainConfig, place: PodPlace, job: WrappedJob, nccl: Path) -> Part:
    """Of the job on this pod, once it has ended."""
    seen, marks = job.seen, job.marks_by_rank()
    steps = {rank: tuple(step_lines(marks.get(rank, []), config.warmup_steps)) for rank in sorted(seen.ranks)}
    logs = {rank: _nccl_log(nccl, process) for rank, process in sorted(seen.ranks.items())}
    ranks = tuple(
        _facts(place, process, seen, steps[rank], marks.get(rank, []), logs[rank])
        for rank, process in sorted(seen.ranks.items())
    )
    return Part(exit_code=seen.exit_code, ranks=ranks, steps=steps, nccl_logs=logs, output="".join(seen.output))


def record_of(
    config: TrainConfig,
    place: PodPlace,
    command: tuple[str, ...],
    run_id: str,
    started: datetime,
    parts: Sequence[Part],
    *,
    lost: bool,
) -> RunRecord:
    """The record of the gang; `lost`: a pod couldn't publish its files."""
    ranks = between_ranks(sorted((f for part in parts for f in part.ranks), key=lambda facts: facts.rank))
    steps = {rank: lines for part in parts for rank, lines in part.steps.items()}
    logs = {rank: text for part in parts for rank, text in part.nccl_logs.items() if text}
    config = _as_it_ran(config, command, steps)
    status = _status(parts, lost=lost)
    used = transports_seen(config, ranks, logs)
    start = Start(resumed_after_step=0, link_probe=None, probe=None)
    return RunRecord(
        run_id=run_id,
        status=status,
        started_at=started.isoformat(timespec="seconds"),
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
        starts=place.restarts + 1,
        resumed_after_step=0,
        config=config,
        versions=hardware.versions(),
        data=None,
        model_parameters=None,
        link_shaping=place.link_shaping,
        link_probe=None,
        probe=None,
        hang=None,
        ranks=ranks,
        transports=used,
        summary=summarize(config, steps, ranks),
        verdict=judge(config, status, place.link_shaping, ranks, used, steps, start=start),
    )


def texts_of(part: Part, folder: Path) -> dict[Path, str]:
    """The files of this pod's ranks; what the pod printed stands in the log of its first."""
    texts: dict[Path, str] = {}
    for facts in part.ranks:
        rank = facts.rank
        texts[publish.steps_file(folder, rank)] = "".join(s.model_dump_json() + "\n" for s in part.steps[rank])
        first = facts.local_rank == 0
        texts[publish.log_file(folder, rank)] = part.output if first else "in the log of this pod's first rank\n"
        if part.nccl_logs[rank]:
            texts[publish.nccl_file(folder, rank)] = part.nccl_logs[rank]
    return texts


def _as_it_ran(config: TrainConfig, command: tuple[str, ...], steps: Mapping[int, Sequence[StepLine]]) -> TrainConfig:
    """No formula knows this job's bytes, and its steps are those that it told of."""
    last = max((line.step for lines in steps.values() for line in lines), default=0)
    expectations = config.expectations.model_copy(update={"bytes_sent": None})
    changes = {"command": command, "steps": last, "probe_s": 0.0, "resume": False, "expectations": expectations}
    return config.model_copy(update=changes)


def _status(parts: Sequence[Part], *, lost: bool) -> Status:
    codes = {part.exit_code for part in parts}
    if codes == {0} and not lost:
        return "complete"
    return "interrupted" if INTERRUPTED in codes else "failed"


def _nccl_log(folder: Path, process: RankProcess) -> str:
    files = sorted(folder.glob(f"nccl.*.{process.pid}"))
    return files[0].read_text(errors="replace") if files else ""


def _facts(
    place: PodPlace, process: RankProcess, seen: Seen, lines: Sequence[StepLine], marks: Sequence[Mark], nccl_log: str
) -> RankFacts:
    connections = seen.connections.get(process.rank, set())
    return RankFacts(
        rank=process.rank,
        local_rank=process.local_rank,
        pod=place.pod,
        hostname=place.hostname,
        node=place.node,
        addresses=counters.addresses(),
        device=hardware.device(process.local_rank),
        efa_devices=counters.efa_devices(),
        nccl_nics_found=nics_found(nccl_log),
        connections=tuple(sorted(connections, key=lambda c: (c.local_address, c.remote_address))),
        counters=seen.samples,
        peak_allocated_bytes=None,
        peak_reserved_bytes=None,
        peak_resident_bytes=hardware.peak_resident_bytes_of_children(),
        omp_threads=process.omp_threads,
        clock=_clock(seen, lines, marks),
    )


def _clock(seen: Seen, lines: Sequence[StepLine], marks: Sequence[Mark]) -> Clock:
    """Until the first mark the job gets ready."""
    ready_s = max(0.0, marks[0].unix_s - seen.started_unix_s) if marks else 0.0
    parts = dict.fromkeys(Clock.model_fields, 0.0) | {
        "model_s": ready_s,
        "warmup_s": sum((line.seconds for line in lines if line.phase == "warmup"), start=0.0),
        "timed_s": sum((line.seconds for line in lines if line.phase == "timed"), start=0.0),
    }
    return Clock(**parts)
