"""The record: written here first, then published file by file to where records are kept.

Every rank publishes its own files, because only it sees them; rank 0 publishes record.json last, so a folder
with a record.json is whole.
"""

from collections.abc import Iterator
from pathlib import Path

import fsspec

from trainer.distributed import Place
from trainer.errors import first_line

RECORD = "record.json"
TOPOLOGY = "topology.txt"


class PublishError(Exception):
    """A record that couldn't be published; says where its files still are."""


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


def collect_logs(place: Place, folder: Path) -> None:
    """Copy what this rank and its NCCL printed into the record's folder."""
    printed = log_file(folder, place.rank)
    printed.parent.mkdir(parents=True, exist_ok=True)
    printed.write_text("".join(_printed(place)))
    if nccl := nccl_text(place):
        target = nccl_file(folder, place.rank)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(nccl)


def nccl_text(place: Place) -> str:
    """NCCL's log of this rank so far; empty where there is none."""
    log = place.nccl_log
    return log.read_text(errors="replace") if log is not None and log.exists() else ""


def publish(folder: Path, uri: str, files: list[Path]) -> None:
    """Copy files of the record's folder to uri/<run id>/; a PublishError leaves them here and says where."""
    target = f"{uri}/{folder.name}"
    try:
        filesystem, root = fsspec.core.url_to_fs(target)
        for file in files:
            remote = f"{root}/{file.relative_to(folder).as_posix()}"
            filesystem.makedirs(remote.rpartition("/")[0], exist_ok=True)
            filesystem.put_file(str(file), remote)
    except Exception as error:  # each file system has exceptions of its own
        raise PublishError(
            f"records {target}: can't be published: {first_line(error)}; the files are still in {folder}"
        ) from error


def own_files(folder: Path, rank: int) -> list[Path]:
    """The files that this rank publishes, record.json apart."""
    files = [steps_file(folder, rank), log_file(folder, rank), nccl_file(folder, rank)]
    if rank == 0:
        files.append(folder / TOPOLOGY)
    return [file for file in files if file.exists()]


def _printed(place: Place) -> Iterator[str]:
    streams = [place.log_folder / f"{name}.log" for name in ("stdout", "stderr")] if place.log_folder else []
    present = [stream for stream in streams if stream.exists()]
    if not present:
        yield "not captured: start torchrun with --log-dir DIR --tee 3\n"
    for stream in present:
        yield f"==> {stream.name} <==\n{stream.read_text(errors='replace')}"
