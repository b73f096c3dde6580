"""A cache that is warm but empty of runs, so that only the first run trains the tokenizer."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def fresh_cache(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """A new folder with the embedded texts that earlier runs of this session encoded."""
    warm = tmp_path_factory.mktemp("warm")

    def make() -> Path:
        for used in tmp_path_factory.getbasetemp().glob("cache*/embedded-*.npz"):
            if not (warm / used.name).exists():
                shutil.copy(used, warm / used.name)
        cache = tmp_path_factory.mktemp("cache")
        for file in warm.iterdir():
            shutil.copy(file, cache / file.name)
        return cache

    return make


@pytest.fixture
def cache(fresh_cache: Callable[[], Path]) -> Path:
    return fresh_cache()
