"""The processes of a wrapped job that are its ranks, found by what torchrun put into their environment."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class RankProcess:
    """One rank of the job on this pod."""

    pid: int
    rank: int
    local_rank: int
    omp_threads: int


def rank_processes(root: int) -> dict[int, RankProcess]:
    """By global rank: of several processes that inherited a rank's environment, the one that started first."""
    found: dict[int, RankProcess] = {}
    for process in _below(root):
        try:
            variables = process.environ()
        except psutil.Error:
            continue  # it ended since it was listed
        rank, local_rank = variables.get("RANK", ""), variables.get("LOCAL_RANK", "")
        if rank.isdecimal() and local_rank.isdecimal():
            found.setdefault(int(rank), _rank_process(process.pid, variables))
    return found


def _rank_process(pid: int, variables: Mapping[str, str]) -> RankProcess:
    threads = variables.get("OMP_NUM_THREADS", "")
    return RankProcess(
        pid=pid,
        rank=int(variables["RANK"]),
        local_rank=int(variables["LOCAL_RANK"]),
        omp_threads=int(threads) if threads.isdecimal() and int(threads) else psutil.cpu_count() or 1,
    )


def _below(root: int) -> Iterator[psutil.Process]:
    """The parent before its children."""
    try:
        process = psutil.Process(root)
        yield from sorted(process.children(recursive=True), key=lambda child: child.create_time())
    except psutil.Error:
        return
