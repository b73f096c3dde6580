"""What a prediction is made of: ranges with their formula and source, never a bare number."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Range:
    """Low, expected and high value of one predicted figure; the unit stands in the name of the field."""

    low: float
    expected: float
    high: float

    def __post_init__(self) -> None:
        assert self.low <= self.expected <= self.high, f"unordered range {self}"

    def scaled(self, factor: float) -> "Range":
        """The range in another unit; `factor` > 0."""
        return Range(low=self.low * factor, expected=self.expected * factor, high=self.high * factor)

    def plus(self, other: "Range") -> "Range":
        """Sum end by end."""
        return Range(low=self.low + other.low, expected=self.expected + other.expected, high=self.high + other.high)


ZERO = Range(low=0.0, expected=0.0, high=0.0)


@dataclass(frozen=True, kw_only=True)
class Source:
    """How a figure was computed and where its constants come from."""

    formula: str
    source: str


@dataclass(frozen=True, kw_only=True)
class MemoryPrediction:
    """Per GPU (per rank on `cpu`) and per pod, in GiB of 2^30 bytes."""

    states_gib: float
    """Weights, gradients and optimizer states that stay."""
    working_gib: Range
    """Gathered parameters, buckets, activations, logits and runtime."""
    per_rank_gib: Range
    limit_gib: float | None
    """What one rank has; None where the machine doesn't say."""
    host_per_pod_gib: Range
    explained: Source


@dataclass(frozen=True, kw_only=True)
class TrafficPrediction:
    """Bytes of one optimizer step."""

    collective_bytes_per_rank: float
    """What each rank sends over the ring, whatever the link."""
    pod_sent_bytes: float
    """What leaves one pod; 0 for a single pod."""
    explained: Source


@dataclass(frozen=True, kw_only=True)
class StepPrediction:
    """Seconds of one optimizer step and its parts."""

    step_s: Range
    compute_s: Range
    communication_s: Range
    """Of the slowest link, whether hidden behind compute or not."""
    exposed_communication_s: Range
    host_copy_s: Range
    optimizer_s: Range
    slowest_link: str
    """What the slowest hop runs over, in words."""
    explained: tuple[Source, ...]


@dataclass(frozen=True, kw_only=True)
class CostPrediction:
    """Dollars of the whole run, nodes idle before and after not counted; None where no price is known."""

    nodes: int
    usd_per_hour: float | None
    run_usd: Range | None
    explained: Source


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Everything that is said before money is spent."""

    memory: MemoryPrediction
    traffic: TrafficPrediction
    step: StepPrediction
    real_tokens_per_s: Range
    """Of all ranks together, padding not counted."""
    mfu: Range | None
    """Of real tokens, as it is measured."""
    wall_clock_s: Range
    cost: CostPrediction
