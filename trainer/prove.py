"""`python -m trainer.prove --config FILE -- CMD...`: bring your own job; topology, verdict and report stay the same.

Started in every pod in place of the job's own command, e.g. `-- torchrun train.py`. It sets NCCL's logging, counts
the pod's bytes, reads the steps that the job tells of (`trainer.mark`, or JSON lines that it prints), and leaves the
same record as a run of our trainer. FILE is a config as `topo render` writes it for a topology: places, links and
verdict come from it; model, data and recipe are the job's own business.
"""

import argparse
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from trainer import proving, publish
from trainer.config import TrainConfig, read_config
from trainer.distributed import PodPlace, read_pod
from trainer.gang import Gang
from trainer.mark import FOLDER_VARIABLE
from trainer.wrapped_job import WrappedJob

NCCL_SUBSYSTEMS = "INIT,NET,ENV,GRAPH,TUNING"


def main() -> int:
    """Wrap the command; a ValueError becomes one sentence and exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m trainer.prove", usage="%(prog)s --config FILE -- CMD...")
    parser.add_argument("--config", type=Path, required=True, help="a config of the topology, as JSON")
    parser.add_argument("command", nargs="+", metavar="CMD", help="the job's own command, after --")
    arguments = parser.parse_args()
    try:
        return prove(read_config(arguments.config), read_pod(), tuple(arguments.command))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


def prove(config: TrainConfig, place: PodPlace, command: tuple[str, ...]) -> int:
    """Run the command and publish the record of its gang; returns the exit code.

    The job's own where it failed; 3 where its link was wrong and the config stops for that; 1 where the record
    couldn't be published. Raises ValueError for what the user got wrong.
    """
    started, gang = datetime.now(UTC), Gang(place, config.pods)
    run_id = _shared_run_id(gang, config, place, started)
    folder = place.cache / "records" / run_id
    marks, nccl = folder / "marks", folder / "nccl-of-processes"
    for each in (marks, nccl):
        each.mkdir(parents=True, exist_ok=True)
    job = WrappedJob(command, environment(marks, nccl), marks, config.warmup_steps)
    _pass_on_sigterm(job)
    job.run()
    part = proving.part_of(config, place, job, nccl)
    parts = [proving.Part.model_validate_json(text) for text in gang.gather("part", part.model_dump_json())]
    lost = _publish_own(part, folder, place)
    lost_anywhere = any(gang.gather("published", lost))
    record = proving.record_of(config, place, command, folder.name, started, parts, lost=lost_anywhere)
    if place.pod == 0:
        print(f"{record.verdict.outcome}: {'; '.join(record.verdict.reasons) or record.run_id}")
        lost = _published(folder, place, {folder / publish.RECORD: record.model_dump_json(indent=1) + "\n"})
    return _exit_code(config, record.verdict.outcome, [p.exit_code for p in parts], lost or lost_anywhere)


def environment(marks: Path, nccl: Path) -> dict[str, str]:
    """What the job's processes get beside their own environment."""
    return {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": NCCL_SUBSYSTEMS,
        "NCCL_DEBUG_FILE": f"{nccl}/nccl.%h.%p",
        FOLDER_VARIABLE: str(marks),
    }


def _shared_run_id(gang: Gang, config: TrainConfig, place: PodPlace, started: datetime) -> str:
    proposed = f"{config.job_name}-{started:%Y%m%dT%H%M%SZ}"
    if place.pod == 0:
        publish.refuse_existing(place.records_uri, proposed)
    return gang.gather("run", proposed)[0]


def _pass_on_sigterm(job: WrappedJob) -> None:
    def pass_on(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a handler's signature
        job.terminate()

    signal.signal(signal.SIGTERM, pass_on)


def _publish_own(part: proving.Part, folder: Path, place: PodPlace) -> str:
    return _published(folder, place, proving.texts_of(part, folder))


def _published(folder: Path, place: PodPlace, texts: dict[Path, str]) -> str:
    try:
        publish.publish(folder, place.records_uri, texts)
        publish.keep(texts)
    except publish.PublishError as error:
        print(error, file=sys.stderr)
        return str(error)
    return ""


def _exit_code(config: TrainConfig, outcome: str, codes: list[int], lost: object) -> int:
    failed = next((code for code in codes if code), 0)
    if failed:
        return failed
    if lost:
        return 1
    return 3 if outcome == "INVALID" and config.on_wrong_link == "stop" else 0


if __name__ == "__main__":
    sys.exit(main())
