"""Kubernetes quantities, in the form that the API server would give back, and as numbers."""

import re
from decimal import Decimal

_SUFFIXES = {
    "m": Decimal("0.001"), "": Decimal(1), "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9),
    "T": Decimal(10**12), "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
}  # fmt: skip
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z]*)")


def cpu(millis: int) -> str:
    """`40`, or `1500m` where it isn't whole."""
    return str(millis // 1000) if millis % 1000 == 0 else f"{millis}m"


def gib(number: int) -> str:
    """`384Gi`, or `1Ti` where it is whole."""
    return f"{number // 1024}Ti" if number % 1024 == 0 else f"{number}Gi"


def number(quantity: str) -> Decimal:
    """`500m` is 0.5, `1Gi` is 1073741824. ValueError for what isn't a quantity."""
    found = _QUANTITY.fullmatch(quantity)
    if not found or found[2] not in _SUFFIXES:
        raise ValueError(f"{quantity!r} isn't a quantity; write a number with one of {', '.join(_SUFFIXES)}")
    return Decimal(found[1]) * _SUFFIXES[found[2]]
