"""Run records from folders and URIs: read whole and checked, or refused with one sentence."""

import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import fsspec
from fsspec import AbstractFileSystem
from pydantic import ValidationError

from trainer.record import RECORD_SCHEMA, RunRecord, StepLine


@dataclass(frozen=True)
class Run:
    """One run as its record tells it."""

    location: str
    record: RunRecord
    steps: Mapping[int, tuple[StepLine, ...]]
    """By rank."""
    nccl_logs: Mapping[int, str]
    """By rank; empty where the backend is gloo."""
    missing: tuple[str, ...]
    """Files that a complete record holds and this one lacks, though no figure is computed from them."""


def read_runs(locations: Sequence[str]) -> tuple[Run, ...]:
    """Read every record at or below the locations (folders, `file:` or `s3://` URIs), ordered by run id.

    ValueError: no record there, a file missing, truncated, or of another schema, two runs in one folder, or
    one run id twice.
    """
    runs: dict[str, Run] = {}
    for location in locations:
        for run in _read_location(location):
            known = runs.setdefault(run.record.run_id, run)
            if known.location != run.location:
                raise ValueError(
                    f"run id {run.record.run_id} stands in {known.location} and in {run.location}; give one of them"
                )
    return tuple(runs[run_id] for run_id in sorted(runs))


def _read_location(location: str) -> Iterator[Run]:
    filesystem, files = _list(location)
    folders = [posixpath.dirname(name) for name in files if posixpath.basename(name) == "record.json"]
    if not folders:
        raise ValueError(f"{location}: no record found (no record.json); {_what_is_there(files)}")
    _refuse_nested(folders)
    for folder in folders:
        own = tuple(name for name in files if name.startswith(f"{folder}/"))
        yield _read_run(_Folder(filesystem, folder, own))


def _list(location: str) -> tuple[AbstractFileSystem, list[str]]:
    """All files at or below a location, which may also be a record.json itself."""
    try:
        filesystem, path = fsspec.core.url_to_fs(location)
        return filesystem, sorted(filesystem.find(path.removesuffix("/record.json")))
    # Each back end raises its own client's errors, e.g. botocore's NoCredentialsError, which is no OSError.
    except Exception as error:
        raise ValueError(f"{location}: can't be read ({type(error).__name__}: {error})") from error


def _what_is_there(files: Sequence[str]) -> str:
    """A run that died before it published leaves step lines without a record."""
    lines = [name for name in files if name.endswith(".jsonl")]
    if lines:
        return f"{lines[0]} stands there without one, so that run did not finish publishing"
    return f"{len(files)} other files are there" if files else "nothing is there"


def _refuse_nested(folders: Sequence[str]) -> None:
    for outer, inner in pairwise(sorted(folders)):
        if inner.startswith(f"{outer}/"):
            raise ValueError(f"{outer}: two runs in one folder, the other in {inner}; move one out")


@dataclass(frozen=True)
class _Folder:
    filesystem: AbstractFileSystem
    path: str
    files: tuple[str, ...]

    def name(self, *parts: str) -> str:
        return posixpath.join(self.path, *parts)

    def text(self, name: str) -> str:
        """NCCL's logs may hold torn bytes; they are replaced, and such a line is then no evidence."""
        try:
            return str(self.filesystem.cat_file(name).decode("utf-8", errors="replace"))
        except OSError as error:
            raise ValueError(f"{name}: can't be read ({type(error).__name__}: {error})") from error

    def ranks_of(self, kind: str, suffix: str) -> dict[int, str]:
        """Rank to file name of `<kind>/rank-00000<suffix>`."""
        prefix = self.name(kind, "rank-")
        found = {}
        for name in self.files:
            number = name.removeprefix(prefix).removesuffix(suffix)
            if name == f"{prefix}{number}{suffix}" and number.isdecimal():
                found[int(number)] = name
        return found


def _read_run(folder: _Folder) -> Run:
    record = _read_record(folder)
    config = record.config
    step_files = folder.ranks_of("steps", ".jsonl")
    nccl_files = folder.ranks_of("nccl", ".log") if config.backend == "nccl" else {}
    _refuse_foreign(folder, step_files, config.ranks)
    if record.status == "complete":
        _require(folder, step_files, config.ranks, "steps", ".jsonl")
        if config.backend == "nccl":
            _require(folder, nccl_files, config.ranks, "nccl", ".log")
    return Run(
        location=str(folder.filesystem.unstrip_protocol(folder.path)),
        record=record,
        steps={rank: _read_steps(folder, name) for rank, name in sorted(step_files.items())},
        nccl_logs={rank: folder.text(name) for rank, name in sorted(nccl_files.items())},
        missing=_missing_logs(folder, record),
    )


def _read_record(folder: _Folder) -> RunRecord:
    name = folder.name("record.json")
    text = folder.text(name)
    try:
        schema = json.loads(text).get("record_schema")
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{name}: truncated or not a record ({error}); fetch it again") from error
    if schema != RECORD_SCHEMA:
        raise ValueError(
            f"{name}: record schema {schema}, this topolab reads schema {RECORD_SCHEMA}; use the release that wrote it"
        )
    try:
        return RunRecord.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise ValueError(f"{name}: not a record of schema {RECORD_SCHEMA}: {field}: {first['msg']}") from error


def _refuse_foreign(folder: _Folder, step_files: Mapping[int, str], ranks: int) -> None:
    foreign = sorted(rank for rank in step_files if rank >= ranks)
    if foreign:
        raise ValueError(
            f"{step_files[foreign[0]]}: two runs in one folder: its record has {ranks} ranks, "
            f"and here are the steps of rank {foreign[0]}; give each run a folder of its own ({folder.path})"
        )


def _require(folder: _Folder, files: Mapping[int, str], ranks: int, kind: str, suffix: str) -> None:
    for rank in range(ranks):
        if rank not in files:
            name = folder.name(kind, f"rank-{rank:05}{suffix}")
            raise ValueError(f"{name}: missing, though the record says that the run completed; collect it again")


def _missing_logs(folder: _Folder, record: RunRecord) -> tuple[str, ...]:
    if record.status != "complete":
        return ()
    names = (f"logs/rank-{rank:05}.log" for rank in range(record.config.ranks))
    return tuple(name for name in names if folder.name(name) not in folder.files)


def _read_steps(folder: _Folder, name: str) -> tuple[StepLine, ...]:
    lines: list[StepLine] = []
    for number, text in enumerate(folder.text(name).splitlines(), 1):
        try:
            line = StepLine.model_validate_json(text)
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise ValueError(f"{name}:{number}: truncated or damaged step line ({reason}); collect it again") from error
        if lines and line.step <= lines[-1].step:
            raise ValueError(
                f"{name}:{number}: step {line.step} after step {lines[-1].step}: two runs in one folder; "
                "give each run a folder of its own"
            )
        lines.append(line)
    return tuple(lines)
