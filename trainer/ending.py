"""How a run ends: the ranks' facts become one record, and every rank publishes its files."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from trainer import hardware, publish
from trainer.checkpoint import checkpoints_of, end_for_good
from trainer.config import TrainConfig
from trainer.distributed import Place
from trainer.facts import Stopwatch, gather, gather_facts, own_facts, transports_seen
from trainer.flops import parameters
from trainer.loop import Loop
from trainer.publish import PublishError
from trainer.record import Clock, DataFacts, Hang, RankFacts, RunRecord, Status, StepLine
from trainer.summary import summarize
from trainer.verdict import Start, judge

EXIT_CODES: dict[Status, int] = {
    "complete": 0,
    "failed": 1,
    "stopped-wrong-link": 3,
    "stopped-nan-loss": 4,
    "hung": 5,
    "interrupted": 143,  # as if SIGTERM had ended it, so that whoever restarts pods restarts this one
}


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What the record is made of, besides what the ranks still have to say."""

    config: TrainConfig
    place: Place
    folder: Path
    started: datetime
    data: DataFacts | None
    start: Start
    watch: Stopwatch
    loop: Loop


def conclude(end: Ending) -> int:
    """Collective: make and publish the record of a run that ended in order; returns the exit code.

    record.json comes last, and says `failed` where any rank couldn't publish its files.
    """
    place, loop = end.place, end.loop
    ranks = gather_facts(_own(end))
    steps = dict(enumerate(map(_lines, gather(_text(loop.writer.finished)))))
    logs = dict(enumerate(gather(publish.nccl_text(place))))
    topologies = gather(hardware.gpu_topology() or "" if place.local_rank == 0 else "")
    if place.rank == 0:
        print(f"{end.folder.name}: {loop.status} after step {_last_step(loop)} of {end.config.steps}{_saving(loop)}")
    lost = [text for text in gather(_publish_own(end, _topology(ranks, topologies))) if text]
    status: Status = "failed" if lost else loop.status
    failed = ""
    if place.rank == 0:
        record = _record(end, status, ranks, steps, logs)
        print(f"{record.verdict.outcome}: {'; '.join(record.verdict.reasons) or end.folder.name}")
        failed = _publish_record(end, record)
        _tell_restarts(end, status)
    return EXIT_CODES["failed" if any(gather(failed)) else status]


def _tell_restarts(end: Ending, status: Status) -> None:
    """A link that is wrong and a loss that isn't a number stay so; an interruption and a failure need not."""
    if end.config.resume and status in ("stopped-wrong-link", "stopped-nan-loss"):
        end_for_good(checkpoints_of(end.config, end.place.checkpoints), f"`{status}` after step {_last_step(end.loop)}")


def salvage(end: Ending, hang: Hang | None = None, speaker: int = 0) -> int:
    """After an exception or in a hang, on this rank alone: publish what it has. Returns the exit code.

    `speaker`: the rank that writes record.json, the lowest that is alive.
    """
    status: Status = "failed" if hang is None else "hung"
    _publish_own(end, "")
    rank = end.place.rank
    if rank == speaker:
        own, steps = (_own(end),), {rank: end.loop.writer.finished}
        _publish_record(end, _record(end, status, own, steps, {rank: publish.nccl_text(end.place)}, hang))
    return EXIT_CODES[status]


def _own(end: Ending) -> RankFacts:
    return own_facts(end.place, _clock(end), end.loop.connections, end.loop.counters)


def _clock(end: Ending) -> Clock:
    lines = end.loop.writer.finished
    known = end.watch.clock()
    return known.model_copy(
        update={
            "warmup_s": sum((line.seconds for line in lines if line.phase == "warmup"), start=0.0),
            "timed_s": sum((line.seconds for line in lines if line.phase == "timed"), start=0.0),
            "checkpoint_s": sum((line.checkpoint_s for line in lines), start=0.0),
            "bookkeeping_s": end.loop.bookkeeping_s,
        }
    )


def _text(lines: Sequence[StepLine]) -> str:
    return "".join(line.model_dump_json() + "\n" for line in lines)


def _lines(text: str) -> list[StepLine]:
    return [StepLine.model_validate_json(line) for line in text.splitlines()]


def _last_step(loop: Loop) -> int:
    return loop.writer.finished[-1].step if loop.writer.finished else 0


def _saving(loop: Loop) -> str:
    """What checkpoints cost, in words."""
    saved = [line.checkpoint_s for line in loop.writer.finished if line.checkpoint_s]
    return f"; {len(saved)} checkpoints took {sum(saved):.1f} s" if saved else ""


def _topology(ranks: Sequence[RankFacts], topologies: Sequence[str]) -> str:
    by_pod = [(f.pod, text) for f, text in zip(ranks, topologies, strict=True) if text]
    return "\n\n".join(f"==> pod {pod} <==\n{text}" for pod, text in by_pod)


def _record(
    end: Ending,
    status: Status,
    ranks: tuple[RankFacts, ...],
    steps: Mapping[int, Sequence[StepLine]],
    nccl_logs: Mapping[int, str],
    hang: Hang | None = None,
) -> RunRecord:
    config, shaping = end.config, end.place.link_shaping
    used = transports_seen(config, ranks, nccl_logs)
    return RunRecord(
        run_id=end.folder.name,
        status=status,
        started_at=end.started.isoformat(timespec="seconds"),
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
        starts=end.place.restarts + 1,
        resumed_after_step=end.start.resumed_after_step,
        config=config,
        versions=hardware.versions(),
        data=end.data,
        model_parameters=parameters(config.model.architecture),
        kernels=end.loop.kernels,
        link_shaping=shaping,
        link_probe=end.start.link_probe,
        probe=end.start.probe,
        hang=hang,
        ranks=ranks,
        transports=used,
        summary=summarize(config, steps, ranks),
        verdict=judge(
            config,
            status,
            shaping,
            ranks,
            used,
            steps,
            start=end.start,
            hang=hang,
        ),
    )


def _publish_own(end: Ending, topology: str) -> str:
    texts = publish.own_texts(end.place, end.folder, _text(end.loop.writer.finished))
    if topology and end.place.rank == 0:
        texts[end.folder / publish.TOPOLOGY] = topology + "\n"
    return _publish(end, texts)


def _publish_record(end: Ending, record: RunRecord) -> str:
    return _publish(end, {end.folder / publish.RECORD: record.model_dump_json(indent=1) + "\n"})


def _publish(end: Ending, texts: Mapping[Path, str]) -> str:
    """Publish files, then keep them here too; returns what went wrong with publishing, else an empty text.

    Publishing comes first: a full disk here must not hold it back, and a copy here is only for a look.
    """
    unpublished = _said(lambda: publish.publish(end.folder, end.place.records_uri, texts))
    unkept = _said(lambda: publish.keep(texts))
    if unpublished and not unkept:
        print(f"the files are still in {end.folder}", file=sys.stderr)
    return unpublished


def _said(effect: Callable[[], None]) -> str:
    """What an effect raised, said on stderr; an empty text where it went well."""
    try:
        effect()
    except PublishError as error:
        print(error, file=sys.stderr)
        return str(error)
    return ""
