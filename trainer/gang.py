"""How the pods of a wrapped job tell each other what they saw: a key-value store on the first pod."""

from collections.abc import Sequence
from datetime import timedelta

import torch.distributed as dist

from trainer.distributed import PodPlace

_PATIENCE = timedelta(minutes=15)
"""Pods of a gang may start that far apart, and one may still publish its logs when another has ended."""


class Gang:
    """Gathers texts between the pods, each under a name that is used once."""

    def __init__(self, place: PodPlace, pods: int) -> None:
        self._pod, self._pods = place.pod, pods
        self._store: dist.Store | None = None
        if pods > 1:
            # Beside the job's own rendezvous, whose port torchrun takes.
            self._store = dist.TCPStore(
                place.master_address, place.master_port + 1, pods, is_master=place.pod == 0, timeout=_PATIENCE
            )

    def gather(self, name: str, text: str) -> Sequence[str]:
        """The text of each pod, on every pod; a pod that never comes is a RuntimeError of torch's."""
        if self._store is None:
            return [text]
        self._store.set(f"{name}/{self._pod}", text)
        texts = [self._store.get(f"{name}/{pod}").decode() for pod in range(self._pods)]
        self._leave_together(name)
        return texts

    def _leave_together(self, name: str) -> None:
        """The first pod holds the store, so it goes last."""
        assert self._store is not None
        if self._store.add(f"{name}/read", 1) == self._pods:
            self._store.set(f"{name}/over", "")
        if self._pod == 0:
            self._store.wait([f"{name}/over"])
