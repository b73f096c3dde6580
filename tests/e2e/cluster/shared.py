"""One cluster with Trainer for all test modules that change nothing which another one relies on."""

from contextlib import ExitStack

import pytest

from tests.e2e.cluster.cluster import Cluster
from tests.e2e.cluster.trainer import trainer_cluster

_KEY = pytest.StashKey[Cluster]()


def shared_cluster(config: pytest.Config, folders: pytest.TempPathFactory) -> Cluster:
    """Started by the first who asks, ended with the session."""
    if _KEY not in config.stash:
        parts = ExitStack()
        config.add_cleanup(parts.close)
        config.stash[_KEY] = parts.enter_context(trainer_cluster(folders.mktemp("cluster")))
    return config.stash[_KEY]
