"""What was said of an arm before it ran, as far as a report shows it."""

from collections.abc import Mapping
from dataclasses import dataclass

from workloads.planning.prediction import Range


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """The prediction of one arm."""

    step_s: Range
    sent_bytes_per_pod_and_step: Range
    parts_s: Mapping[str, float]
    """Name to expected seconds of one step, e.g. `compute`, `exposed communication`."""
