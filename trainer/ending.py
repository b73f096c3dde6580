"""How a run ends: the ranks' facts become one record, and every rank publishes its files."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from trainer import hardware, publish
from trainer.config import TrainConfig
from trainer.distributed import Place
from trainer.facts import Stopwatch, gather, gather_facts, own_facts
from trainer.flops import parameters
from trainer.loop import Loop
from trainer.publish import PublishError
from trainer.record import DataFacts, RankFacts, RunRecord, Status, StepLine
from trainer.summary import summarize
from trainer.transports import transports
from trainer.verdict import judge

EXIT_CODES: dict[Status, int] = {
    "complete": 0,
    "failed": 1,
    "stopped-wrong-link": 3,
    "interrupted": 143,  # as if SIGTERM had ended it, so that whoever restarts pods restarts this one
}


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What the record is made of, besides what the ranks still have to say."""

    config: TrainConfig
    place: Place
    folder: Path
    started: datetime
    data: DataFacts
    watch: Stopwatch
    loop: Loop


def conclude(end: Ending) -> int:
    """Collective: make and publish the record of a run that ended in order; returns the exit code."""
    place, loop = end.place, end.loop
    _stop_watch(end)
    ranks = gather_facts(_own(end))
    steps = dict(enumerate(map(_lines, gather(_text(loop.writer.lines)))))
    logs = dict(enumerate(gather(publish.nccl_text(place))))
    topologies = gather(hardware.gpu_topology() or "" if place.local_rank == 0 else "")
    if place.rank == 0:
        _write_topology(end.folder, ranks, topologies)
        print(f"{end.folder.name}: {loop.status} after step {_last_step(loop)} of {end.config.steps}")
    publish.collect_logs(place, end.folder)
    failed = _publish(end, publish.own_files(end.folder, place.rank))
    if place.rank == 0 and not failed:
        record = _record(end, loop.status, ranks, steps, logs)
        print(f"{record.verdict.outcome}: {'; '.join(record.verdict.reasons) or end.folder.name}")
        failed = _publish_record(end, record)
    failures = [text for text in gather(failed) if text]
    return EXIT_CODES["failed"] if failures else EXIT_CODES[loop.status]


def salvage(end: Ending) -> int:
    """After an exception, on this rank alone: publish what it has. Returns the exit code."""
    end.loop.writer.close()
    publish.collect_logs(end.place, end.folder)
    failed = _publish(end, publish.own_files(end.folder, end.place.rank))
    if end.place.rank == 0 and not failed:
        own = (_own(end),)
        steps = {0: end.loop.writer.lines}
        _publish_record(end, _record(end, "failed", own, steps, {0: publish.nccl_text(end.place)}))
    return EXIT_CODES["failed"]


def _stop_watch(end: Ending) -> None:
    for line in end.loop.writer.lines:
        end.watch.add("warmup_s" if line.phase == "warmup" else "timed_s", line.seconds)
        end.watch.add("checkpoint_s", line.checkpoint_s)
    end.watch.add("bookkeeping_s", end.loop.bookkeeping_s)


def _own(end: Ending) -> RankFacts:
    return own_facts(end.place, end.watch.clock(), end.loop.connections, end.loop.counters)


def _text(lines: Sequence[StepLine]) -> str:
    return "\n".join(line.model_dump_json() for line in lines)


def _lines(text: str) -> list[StepLine]:
    return [StepLine.model_validate_json(line) for line in text.splitlines()]


def _last_step(loop: Loop) -> int:
    return loop.writer.lines[-1].step if loop.writer.lines else 0


def _write_topology(folder: Path, ranks: Sequence[RankFacts], topologies: Sequence[str]) -> None:
    by_pod = [(f.pod, text) for f, text in zip(ranks, topologies, strict=True) if text]
    if by_pod:
        text = "\n\n".join(f"==> pod {pod} <==\n{text}" for pod, text in by_pod)
        (folder / publish.TOPOLOGY).write_text(text + "\n")


def _record(
    end: Ending,
    status: Status,
    ranks: tuple[RankFacts, ...],
    steps: Mapping[int, Sequence[StepLine]],
    nccl_logs: Mapping[int, str],
) -> RunRecord:
    config, shaping = end.config, end.place.link_shaping
    used = transports(config, ranks, nccl_logs)
    return RunRecord(
        run_id=end.folder.name,
        status=status,
        started_at=end.started.isoformat(timespec="seconds"),
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
        config=config,
        versions=hardware.versions(),
        data=end.data,
        model_parameters=parameters(config.model.architecture),
        link_shaping=shaping,
        link_probe=None,
        ranks=ranks,
        transports=used,
        summary=summarize(config, steps, ranks),
        verdict=judge(config, status, shaping, ranks, used, steps),
    )


def _publish_record(end: Ending, record: RunRecord) -> str:
    path = end.folder / publish.RECORD
    path.write_text(record.model_dump_json(indent=1) + "\n")
    return _publish(end, [path])


def _publish(end: Ending, files: list[Path]) -> str:
    """Publish files; says on stderr what went wrong and returns it, else an empty text."""
    try:
        publish.publish(end.folder, end.place.records_uri, files)
    except PublishError as error:
        print(error, file=sys.stderr)
        return str(error)
    return ""
