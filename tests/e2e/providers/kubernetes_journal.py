"""Each change that the stand-in makes to the cluster: the fault that it meets, and its line in the operation log."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from tests.e2e.faults import fault_of
from tests.e2e.operations import Operation, append
from tests.e2e.providers.kubernetes_cluster import ApiError, UnreachableError
from tests.e2e.providers.serving import RefusedError
from tests.e2e.site import Site


@dataclass(frozen=True)
class Journal:
    """`stopping` ends a delay that a fault asks for."""

    site: Site
    stopping: threading.Event

    @contextmanager
    def recorded(self, who: Literal["kubernetes", "helm"], verb: str, subject: str) -> Iterator[dict[str, Any]]:
        """Meets the fault of "verb subject" first; what is done inside is written down, with its outcome.

        Yields the details of the line, to be filled. Never put a value of a Secret there.
        """
        details: dict[str, Any] = {}
        try:
            self._meet(who, verb, subject)
            yield details
        except Exception as error:
            self._write(who, verb, subject, _outcome(error), details)
            raise
        self._write(who, verb, subject, "ok", details)

    def _meet(self, who: Literal["kubernetes", "helm"], verb: str, subject: str) -> None:
        fault = fault_of(self.site.faults, who, f"{verb} {subject}")
        if fault is None:
            return
        if fault.delay_s and self.stopping.wait(fault.delay_s):
            raise RefusedError(f"{verb} {subject}: canceled")
        if fault.error is not None:
            raise RefusedError(fault.error)

    def _write(
        self, who: Literal["kubernetes", "helm"], verb: str, subject: str, outcome: str, details: Mapping[str, Any]
    ) -> None:
        append(self.site.operations, Operation(who=who, verb=verb, subject=subject, outcome=outcome, details=details))


def _outcome(error: Exception) -> str:
    if isinstance(error, ApiError):
        return error.reason
    return "Unreachable" if isinstance(error, UnreachableError) else type(error).__name__.removesuffix("Error")
