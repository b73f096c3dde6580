"""Every check at once, each in its own thread, and nobody waits longer than the limit."""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import urllib3
from botocore.exceptions import BotoCoreError, ClientError

from workloads.operations.leftovers.aws import DENIED, code_of
from workloads.operations.preflight.rows import Row, grey, red

Check = Callable[[], Iterator[Row]]

EXPIRED = frozenset({
    "ExpiredToken", "ExpiredTokenException", "RequestExpired", "InvalidClientTokenId", "UnrecognizedClientException",
    "AuthFailure", "SignatureDoesNotMatch",
})  # fmt: skip
LOG_IN = "log in again (`aws sso login`, or new keys), and look at aws:profile of the stack file"


def ask_all(checks: Mapping[str, Check], *, limit_s: float) -> list[Row]:
    """Rows in the order of the checks; one that doesn't answer within the limit is grey.

    The threads are daemons: a question that hangs holds up neither the answer nor the end of the program.
    """
    answers: queue.SimpleQueue[tuple[str, list[Row] | Exception]] = queue.SimpleQueue()
    for name, check in checks.items():
        threading.Thread(target=_answer, args=(name, check, answers), daemon=True).start()
    known: dict[str, list[Row]] = {}
    ends = time.monotonic() + limit_s
    while len(known) < len(checks) and (left := ends - time.monotonic()) > 0:
        try:
            name, rows = answers.get(timeout=left)
        except queue.Empty:
            break
        if isinstance(rows, Exception):
            raise rows
        known[name] = rows
    return [row for name in checks for row in known.get(name, [_late(name, limit_s)])]


def _answer(name: str, check: Check, answers: "queue.SimpleQueue[tuple[str, list[Row] | Exception]]") -> None:
    try:
        answers.put((name, answered(name, check)))
    except Exception as error:  # A fault of ours belongs to the caller, not to a thread that nobody reads.
        answers.put((name, error))


def answered(name: str, check: Check) -> list[Row]:
    """The check's rows; whatever kept it from an answer is a row too, for a check that raises says nothing."""
    try:
        return list(check())
    except ClientError as error:
        return [of_refusal(name, error)]
    except BotoCoreError as error:
        return [of_silence(name, error)]
    except (urllib3.exceptions.HTTPError, OSError) as error:
        return [grey(name, f"there is no way to it from here ({type(error).__name__})", "look at network and proxy")]


def of_refusal(name: str, error: ClientError) -> Row:
    """AWS answered, but not the question."""
    code, operation = code_of(error), error.operation_name
    if code in EXPIRED:
        return red(name, f"AWS takes these credentials no more ({code})", LOG_IN)
    if code in DENIED:
        return grey(name, f"these credentials may not call {operation} ({code})", "allow it, or look in the console")
    return grey(name, f"AWS answers {operation} with {code}", "call again; if it stays, look in the console")


def of_silence(name: str, error: BotoCoreError) -> Row:
    """AWS wasn't reached, or not asked."""
    kind = type(error).__name__
    if kind in _NO_CREDENTIALS:
        return red(name, f"there are no AWS credentials ({_one_line(error)})", LOG_IN)
    return grey(name, f"AWS can't be asked ({_one_line(error)})", "look at network, proxy and aws:region")


_NO_CREDENTIALS = frozenset({
    "NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "TokenRetrievalError", "SSOTokenLoadError",
    "UnauthorizedSSOTokenError", "CredentialRetrievalError", "LoginRefreshRequired",
})  # fmt: skip


def _late(name: str, limit_s: float) -> Row:
    return grey(name, f"no answer within {limit_s:g} s", "call again, or raise --limit")


def _one_line(error: object) -> str:
    return " ".join(str(error).split())


def without(names: Sequence[str], why: str) -> list[Row]:
    """Checks that can't be asked at all."""
    return [grey(name, why) for name in names]
