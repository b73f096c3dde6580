"""`topo collect`: bring run records home, whole or not at all."""

import posixpath
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import fsspec
from fsspec import AbstractFileSystem

from workloads.cli.stack_outputs import stack_outputs

RECORDS_OUTPUT = "records"
"""The stack output that names where its runs publish."""


@dataclass(frozen=True, kw_only=True)
class RemoteRun:
    """One published run: where it is, the folder it gets here, and its files with their sizes in bytes."""

    source: str
    folder: str
    files: dict[str, int]


@click.command("collect")
@click.argument("source", metavar="(STACK | URI)")
@click.option("--out", type=click.Path(path_type=Path), default=Path("records"), show_default=True, metavar="DIR")
def command(source: str, out: Path) -> None:
    """Fetch run records from a stack's bucket or a URI.

    Runs that are already there are left as they are; one that differs is refused and nothing is written.
    """
    uri = source if "://" in source or source.startswith("file:") or Path(source).is_dir() else records_uri(source)
    fetched, known = collect(uri, out)
    click.echo(f"{out}: {fetched} runs fetched, {known} were there already")


def records_uri(stack: str) -> str:
    """Where the runs of a stack publish, asked of the Pulumi command line."""
    try:
        found = stack_outputs(stack).get(RECORDS_OUTPUT)
    except ValueError as error:
        raise ValueError(f"{error}; mend that or give the records' URI") from error
    if not isinstance(found, str):
        raise ValueError(f"{stack}: the stack doesn't say where its records are; run `pulumi up`, or give their URI")
    return found


def collect(uri: str, out: Path) -> tuple[int, int]:
    """Copy every published run below the URI into `out`; numbers of runs fetched and of runs known.

    ValueError: the URI can't be read, holds no finished run, or a run differs from one that is here.
    """
    filesystem, root = _open(uri)
    runs = _runs(uri, filesystem, root)
    missing = [run for run in runs if not _is_here(run, out)]
    out.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=out, prefix=".collecting-") as scratch,
        click.progressbar(missing, label="fetching", file=sys.stderr) as shown,
    ):
        for run in shown:
            _fetch(uri, filesystem, run, Path(scratch))
            target = out / run.folder
            target.parent.mkdir(parents=True, exist_ok=True)
            (Path(scratch) / run.folder).rename(target)
    return len(missing), len(runs) - len(missing)


def _open(uri: str) -> tuple[AbstractFileSystem, str]:
    try:
        filesystem, root = fsspec.core.url_to_fs(uri)
    # Each back end raises its own client's errors, and an unknown protocol raises ValueError.
    except Exception as error:
        raise ValueError(f"{uri}: can't be opened ({error}); give s3://bucket/prefix or file:///folder") from error
    return filesystem, str(root)


def _runs(uri: str, filesystem: AbstractFileSystem, root: str) -> list[RemoteRun]:
    try:
        sizes = {
            posixpath.relpath(name, root): int(facts["size"] or 0)
            for name, facts in filesystem.find(root, detail=True).items()
        }
    except Exception as error:
        raise ValueError(f"{uri}: can't be listed ({type(error).__name__}: {error})") from error
    folders = sorted(posixpath.dirname(name) for name in sizes if posixpath.basename(name) == "record.json")
    if not folders:
        raise ValueError(
            f"{uri}: no finished run is there ({len(sizes)} other files); has the job ended? `kubectl get trainjob`"
        )
    if any(".." in name.split("/") for name in sizes):
        raise ValueError(f"{uri}: a name there points out of its folder; these are no records of topolab")
    return [_run(root, folder, sizes) for folder in folders]


def _run(root: str, folder: str, sizes: dict[str, int]) -> RemoteRun:
    prefix = f"{folder}/" if folder else ""
    return RemoteRun(
        source=posixpath.join(root, folder),
        folder=folder or posixpath.basename(root.rstrip("/")),
        files={name.removeprefix(prefix): size for name, size in sizes.items() if name.startswith(prefix)},
    )


def _is_here(run: RemoteRun, out: Path) -> bool:
    target = out / run.folder
    if not target.exists():
        return False
    here = {str(p.relative_to(target)): p.stat().st_size for p in _files(target)}
    differing = sorted(name for name in here.keys() | run.files.keys() if here.get(name) != run.files.get(name))
    if differing:
        raise ValueError(
            f"{target / differing[0]} differs from the one at the URI; move {target} away, or give another --out"
        )
    return True


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def _fetch(uri: str, filesystem: AbstractFileSystem, run: RemoteRun, scratch: Path) -> None:
    try:
        for name in run.files:
            target = scratch / run.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            filesystem.get_file(posixpath.join(run.source, name), str(target))
    except Exception as error:
        shutil.rmtree(scratch / run.folder, ignore_errors=True)
        raise ValueError(f"{uri}: {run.folder} couldn't be fetched ({type(error).__name__}: {error})") from error
