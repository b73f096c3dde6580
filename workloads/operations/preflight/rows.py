"""One row of a preflight: what was looked at, and whether a stack can go up on it."""

from dataclasses import dataclass
from typing import Literal

Colour = Literal["green", "red", "grey"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """Green: as the stack needs it. Red: `pulumi up` or the run would fail. Grey: it couldn't be learnt.

    `remedy`: what to do about a red or grey row; empty where nothing is to be done.
    """

    check: str
    colour: Colour
    sentence: str
    remedy: str = ""


def green(check: str, sentence: str) -> Row:
    """It is as the stack needs it."""
    return Row(check=check, colour="green", sentence=sentence)


def red(check: str, sentence: str, remedy: str) -> Row:
    """It would fail, and how to mend it."""
    return Row(check=check, colour="red", sentence=sentence, remedy=remedy)


def grey(check: str, sentence: str, remedy: str = "") -> Row:
    """Nobody could tell."""
    return Row(check=check, colour="grey", sentence=sentence, remedy=remedy)
