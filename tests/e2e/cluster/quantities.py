"""Quantities as the kubelet writes them into a variable (`resourceFieldRef`)."""

import math
from decimal import Decimal

from workloads.rendering.quantities import number


def in_units_of(quantity: str, divisor: str) -> int:
    """How many divisors a quantity holds, rounded up; a divisor of "0" counts as 1."""
    unit = number(divisor or "1") or Decimal(1)
    return math.ceil(number(quantity) / unit)
