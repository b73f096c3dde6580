"""The skips that CI expects; any other one fails it."""

import fnmatch

EXPECTED: tuple[tuple[str, str], ...] = (
    # (pattern of the test's id, words of the reason)
    ("*", "needs a GPU"),
    ("*lab*", "only root can"),
)


def is_expected(test_id: str, reason: str) -> bool:
    """Whether a test may be skipped in CI for that reason."""
    return any(fnmatch.fnmatch(test_id, pattern) and words in reason for pattern, words in EXPECTED)
