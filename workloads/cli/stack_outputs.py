"""What a stack says about itself, asked of the Pulumi command line."""

import json
import subprocess
from collections.abc import Mapping


def stack_outputs(stack: str) -> Mapping[str, object]:
    """Outputs of a stack by name, secrets masked. ValueError where Pulumi isn't installed, or has no such stack."""
    try:
        answer = subprocess.run(
            ["pulumi", "stack", "output", "--json", "--stack", stack],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise ValueError(f"{stack}: the pulumi command line isn't installed, so the stack can't be asked") from error
    if answer.returncode:
        reason = " ".join(answer.stderr.split()) or f"pulumi ended with {answer.returncode}"
        raise ValueError(f"{stack}: the stack doesn't answer ({reason})")
    outputs: dict[str, object] = json.loads(answer.stdout)
    return outputs


def stack_secret(stack: str, key: str) -> str | None:
    """A secret of the stack's file, opened by Pulumi; None where it isn't installed, or can't open it."""
    try:
        answer = subprocess.run(
            ["pulumi", "config", "get", f"topolab:{key}", "--stack", stack],
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except FileNotFoundError:
        return None
    return answer.stdout.strip() or None if answer.returncode == 0 else None
