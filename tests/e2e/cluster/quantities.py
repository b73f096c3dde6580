"""Kubernetes quantities as numbers, for `resourceFieldRef`."""

import math
import re
from decimal import Decimal

_SUFFIXES = {
    "m": Decimal("0.001"), "": Decimal(1), "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9),
    "T": Decimal(10**12), "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
}  # fmt: skip
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z]*)")


def number(quantity: str) -> Decimal:
    """`500m` is 0.5, `1Gi` is 1073741824. ValueError for what isn't a quantity."""
    found = _QUANTITY.fullmatch(quantity)
    if not found or found[2] not in _SUFFIXES:
        raise ValueError(f"{quantity!r} isn't a quantity; write a number with one of {', '.join(_SUFFIXES)}")
    return Decimal(found[1]) * _SUFFIXES[found[2]]


def in_units_of(quantity: str, divisor: str) -> int:
    """How many divisors a quantity holds, rounded up, as the kubelet writes it into a variable; "0" counts as 1."""
    unit = number(divisor or "1") or Decimal(1)
    return math.ceil(number(quantity) / unit)
