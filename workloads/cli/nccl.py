"""`topo nccl`: what NCCL used, from any log."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from trainer.nccl_log import NcclLog, describe, parse
from workloads.cli.output import as_json, print_json, print_table


@click.command("nccl")
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@as_json
def command(logs: tuple[str, ...], as_json: bool) -> None:
    """Say what NCCL used, from any log (`-` is standard input).

    The job must have run with NCCL_DEBUG=INFO. Exit code 1: a log names no pair of ranks.
    """
    parsed = [(name, parse(_text(name))) for name in logs]
    if as_json:
        print_json({"logs": [_document(name, log) for name, log in parsed]})
    else:
        for name, log in parsed:
            _print(name, log)
    silent = [name for name, log in parsed if not log.pairs]
    if silent:
        click.echo(
            f"topo: {', '.join(silent)}: no line says which transport a pair of ranks used; "
            "run the job with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH",
            err=True,
        )
        click.get_current_context().exit(1)


def _text(name: str) -> str:
    if name == "-":
        return sys.stdin.buffer.read().decode("utf-8", errors="replace")
    try:
        return Path(name).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ValueError(f"{name}: can't be read ({error.strerror}); give a log, or - for stdin") from error


def _document(name: str, log: NcclLog) -> dict[str, Any]:
    facts = {key: value for key, value in asdict(log).items() if key != "pairs"}
    return {"log": name, **facts, "gdr": log.gdr, "pairs": describe(log)}


def _print(name: str, log: NcclLog) -> None:
    nics = "not said" if log.nics_found is None else str(log.nics_found)
    print_table(
        ("what", "seen"),
        [
            ("NCCL", log.version or "not said"),
            ("network plugin", log.plugin or "not said"),
            ("network", log.network or "not said"),
            ("EFA devices found", nics),
            ("GPUDirect RDMA", log.gdr),
            ("damaged lines", str(log.damaged_lines)),
        ],
        title=name,
    )
    rows = describe(log)
    if rows:
        print_table(list(rows[0]), [tuple(str(value) for value in row.values()) for row in rows])
