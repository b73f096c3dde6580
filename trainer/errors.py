"""Errors of other libraries, in the one line that ours quote."""


def first_line(error: BaseException) -> str:
    """The first line of an exception's text, else its type's name."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
