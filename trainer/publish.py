"""The record: published file by file to where records are kept, and kept here too.

Every rank publishes its own files, because only it sees them. Rank 0 publishes record.json last, once all
ranks have said that their files are there; so a folder is whole unless its record.json says `failed`. Files are
published out of memory, because the disk here may be what failed.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import fsspec

from trainer.distributed import Place
from trainer.errors import first_line

RECORD = "record.json"
TOPOLOGY = "topology.txt"


class PublishError(Exception):
    """Files of a record that couldn't be published, or kept; says which and why."""


def steps_file(folder: Path, rank: int) -> Path:
    """Step lines of one rank."""
    return folder / "steps" / f"rank-{rank:05d}.jsonl"


def log_file(folder: Path, rank: int) -> Path:
    """What one rank printed."""
    return folder / "logs" / f"rank-{rank:05d}.log"


def nccl_file(folder: Path, rank: int) -> Path:
    """NCCL's log of one rank."""
    return folder / "nccl" / f"rank-{rank:05d}.log"


def refuse_existing(uri: str, run_id: str) -> None:
    """Raise a ValueError where the run's folder is there already, or can't be looked for."""
    target = f"{uri}/{run_id}"
    try:
        filesystem, path = fsspec.core.url_to_fs(target)
        exists = filesystem.exists(path)
    except Exception as error:  # each file system has exceptions of its own
        raise ValueError(f"records {uri}: can't be reached: {first_line(error)}") from error
    if exists:
        raise ValueError(f"records {target}: exists already; a run never writes into another's folder")


def own_texts(place: Place, folder: Path, step_lines: str) -> dict[Path, str]:
    """The files that this rank publishes, those of the whole run apart: its steps, and what it printed."""
    texts = {
        steps_file(folder, place.rank): step_lines,
        log_file(folder, place.rank): "".join(_printed(place)),
        nccl_file(folder, place.rank): nccl_text(place),
    }
    return {file: text for file, text in texts.items() if text or file != nccl_file(folder, place.rank)}


def nccl_text(place: Place) -> str:
    """NCCL's log of this rank so far; empty where there is none."""
    log = place.nccl_log
    return log.read_text(errors="replace") if log is not None and log.exists() else ""


def publish(folder: Path, uri: str, texts: Mapping[Path, str]) -> None:
    """Write files of the record's folder to uri/<run id>/; a PublishError says why that can't be done."""
    target = f"{uri}/{folder.name}"
    try:
        filesystem, root = fsspec.core.url_to_fs(target)
        for file, text in texts.items():
            remote = f"{root}/{file.relative_to(folder).as_posix()}"
            filesystem.makedirs(remote.rpartition("/")[0], exist_ok=True)
            filesystem.pipe_file(remote, text.encode())
    except Exception as error:  # each file system has exceptions of its own
        raise PublishError(f"records {target}: can't be published: {first_line(error)}") from error


def keep(texts: Mapping[Path, str]) -> None:
    """Write the files here; a PublishError says why that can't be done."""
    for file, text in texts.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        except OSError as error:
            raise PublishError(f"{file}: can't be kept: {error.strerror}") from error


def _printed(place: Place) -> Iterator[str]:
    streams = [place.log_folder / f"{name}.log" for name in ("stdout", "stderr")] if place.log_folder else []
    present = [stream for stream in streams if stream.exists()]
    if not present:
        yield "not captured: start torchrun with --log-dir DIR --tee 3\n"
    for stream in present:
        yield f"==> {stream.name} <==\n{stream.read_text(errors='replace')}"
