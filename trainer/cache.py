"""Arrays kept in a folder that several processes fill at once."""

import os
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[np.generic]]


def read_arrays(path: Path) -> Arrays | None:
    """The arrays of a file; None where it isn't there, or damaged: zip checks its members' sums."""
    try:
        with np.load(path) as arrays:
            return dict(arrays)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write a file of its own and rename it, so that a reader sees all of it or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".partial")
    with os.fdopen(handle, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type] # numpy's stub takes its own flag for an array
    Path(name).replace(path)


def text_array(text: str) -> npt.NDArray[np.uint8]:
    """A text as an array of bytes, to be kept beside others."""
    return np.frombuffer(text.encode(), dtype=np.uint8)


def array_text(array: npt.NDArray[np.generic]) -> str:
    """The text of `text_array`."""
    return array.tobytes().decode()
