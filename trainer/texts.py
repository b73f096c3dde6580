"""Where texts come from: a Hugging Face data set, or files that fsspec can open.

A source is read in its own order and only as far as the run needs it, so a huge corpus costs no more than
its beginning.
"""

import sys
from collections.abc import Iterator
from importlib import import_module

import fsspec

from trainer.errors import first_line

TEXT_COLUMN = "text"


def read_texts(source: str, token: str | None) -> Iterator[str]:
    """Texts of `hf:<id>[:<config>]`, `s3://...` or `file:<path>`; ValueError says what can't be read."""
    if source.startswith("hf:"):
        return _data_set_rows(source, token)
    if source.startswith(("s3://", "file:")):
        return _files(source)
    raise ValueError(
        f"data.source: {source!r} is no source; use embedded, hf:<id>, s3://<bucket>/<path> or file:<path>"
    )


def _data_set_rows(source: str, token: str | None) -> Iterator[str]:
    identifier, _, configuration = source.removeprefix("hf:").partition(":")
    # Loaded here because importing it takes two seconds of a run that reads other texts; it was hidden from
    # transformers for the same reason.
    if "datasets" in sys.modules and sys.modules["datasets"] is None:
        del sys.modules["datasets"]
    load_dataset = import_module("datasets").load_dataset
    try:
        rows = load_dataset(identifier, configuration or None, split="train", streaming=True, token=token or False)
        first = next(iter(rows), None)
    except (OSError, ValueError, RuntimeError) as error:
        raise ValueError(f"data.source: {source} can't be read: {first_line(error)}") from error
    if first is None or not isinstance(first.get(TEXT_COLUMN), str):
        columns = ", ".join(first) if first else "no rows"
        raise ValueError(
            f"data.source: {source} has no column `{TEXT_COLUMN}` of strings (it has: {columns}); "
            "choose a text data set"
        )
    return (row[TEXT_COLUMN] for row in rows)


def _files(source: str) -> Iterator[str]:
    try:
        filesystem, path = fsspec.core.url_to_fs(source)
        paths = [path] if filesystem.isfile(path) else sorted(filesystem.find(path))
    except (OSError, ValueError, ImportError) as error:
        raise ValueError(f"data.source: {source} can't be read: {first_line(error)}") from error
    if not paths:
        raise ValueError(f"data.source: {source} holds no file; give a text file or a folder of them")
    return _contents(source, filesystem, paths)


def _contents(source: str, filesystem: fsspec.AbstractFileSystem, paths: list[str]) -> Iterator[str]:
    for path in paths:
        try:
            yield filesystem.cat_file(path).decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"data.source: {source}: {path} is not UTF-8 text (byte {error.start})") from error
