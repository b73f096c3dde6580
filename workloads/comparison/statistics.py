"""How sure a ratio of step times is.

Steps of one run share a machine, a placement and a noisy neighbour, so a run is the unit, not a step: a
thousand steps of one run say nothing about the next run. The statistic of a run is its median step. On the
log scale (ratios are what is asked) runs of an arm scatter around the arm; that scatter is estimated from
the repeats of all arms together, as an analysis of variance does, because two or three repeats of one arm
can't estimate it: an experiment runs on one machine, whose disturbances meet all its arms. Where the two
compared arms have repeats enough (four degrees of freedom between them), from those two alone. It is never
taken to be smaller than what the steps within the runs show by a block bootstrap. Student's t gives the
width. Without any repeat only the scatter within runs is known, and the interval says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
RESAMPLES = 400
"""A variance from so many resamples is known to 7%, its root to 4%."""

SEED = 20261121

Series = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """Scatter of the log of a run's median step around its arm."""

    standard_deviation: float
    degrees_of_freedom: int
    """0: no arm was repeated, so only the scatter within runs is known."""
    whole_experiment: bool
    """Estimated from all arms, because the two compared were repeated too seldom."""


@dataclass(frozen=True)
class Interval:
    """A ratio with its confidence interval; `repeated` is False where run-to-run scatter is unknown."""

    value: float
    low: float
    high: float
    repeated: bool

    @property
    def tells_apart(self) -> bool:
        """Whether 1 (no difference) lies outside."""
        return not self.low <= 1.0 <= self.high


ENOUGH_FREEDOM = 4
"""Student's t is 12.7, 4.3, 3.2 and 2.8 at one to four degrees of freedom: below four the width is mostly ignorance."""


def typical_step(runs: Sequence[Series]) -> float:
    """Seconds: the geometric mean over runs of each run's median step."""
    return math.exp(_log_mean(runs))


def spread(arm: Sequence[Series], baseline: Sequence[Series], experiment: Sequence[Sequence[Series]]) -> Spread:
    """The scatter between runs of one arm, floored by the scatter within the runs of the two.

    `experiment` holds all arms, the two included.
    """
    compared = (arm, baseline)
    whole = _degrees_of_freedom(compared) < ENOUGH_FREEDOM and len(experiment) > len(compared)
    pooled = experiment if whole else compared
    freedom = _degrees_of_freedom(pooled)
    squares = sum((_log_median(series) - _log_mean(runs)) ** 2 for runs in pooled for series in runs)
    within = [_median_variance(series) for runs in compared for series in runs]
    variance = max(squares / freedom if freedom else 0.0, sum(within) / len(within))
    return Spread(math.sqrt(variance), freedom, whole)


def ratio(arm: Sequence[Series], baseline: Sequence[Series], scatter: Spread) -> Interval:
    """How many times as long a step of `arm` takes as one of `baseline`."""
    difference = _log_mean(arm) - _log_mean(baseline)
    error = scatter.standard_deviation * math.sqrt(1 / len(arm) + 1 / len(baseline))
    half = student_quantile(scatter.degrees_of_freedom) * error
    return Interval(
        value=math.exp(difference),
        low=math.exp(difference - half),
        high=math.exp(difference + half),
        repeated=scatter.degrees_of_freedom > 0,
    )


def _degrees_of_freedom(arms: Sequence[Sequence[Series]]) -> int:
    return sum(len(runs) - 1 for runs in arms)


def _log_mean(runs: Sequence[Series]) -> float:
    return float(np.mean([_log_median(series) for series in runs]))


def _log_median(series: Series) -> float:
    return math.log(float(np.median(series)))


def student_quantile(degrees_of_freedom: int, confidence: float = CONFIDENCE) -> float:
    """t such that Student's t lies within -t and t with this probability; 0 degrees: the normal's.

    By bisection of the closed forms for whole degrees of freedom: scipy would cost the CLI a third of a
    report's time to import.
    """
    if not degrees_of_freedom:
        return NormalDist().inv_cdf((1 + confidence) / 2)
    low, high = 0.0, 1000.0
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        inside = _student_probability(middle, degrees_of_freedom) < confidence
        low, high = (middle, high) if inside else (low, middle)
    return high


def _student_probability(t: float, degrees_of_freedom: int) -> float:
    """P(|T| < t): Abramowitz and Stegun 26.7.3 (odd) and 26.7.4 (even)."""
    angle = math.atan(t / math.sqrt(degrees_of_freedom))
    odd = degrees_of_freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = term if degrees_of_freedom > 1 else 0.0
    for k in range(2 + odd, degrees_of_freedom, 2):
        term *= math.cos(angle) ** 2 * (k - 1) / k
        total += term
    partial = math.sin(angle) * total
    return 2 / math.pi * (angle + partial) if odd else partial


def _median_variance(series: Series) -> float:
    """Variance of the log median by a circular block bootstrap (Politis and Romano 1992).

    Blocks of n^(1/3) steps, the rate that Hall, Horowitz and Jing (1995) give for a variance, keep the
    correlation of neighbouring steps.
    """
    count = len(series)
    length = max(1, round(count ** (1 / 3)))
    random = np.random.default_rng(SEED)
    starts = random.integers(0, count, size=(RESAMPLES, -(-count // length)))
    picks = (starts[:, :, None] + np.arange(length)) % count
    resampled = series[picks.reshape(RESAMPLES, -1)[:, :count]]
    return float(np.var(np.log(np.median(resampled, axis=1))))
