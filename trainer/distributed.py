"""The places of a run: which rank this is, of how many, where. The only reader of the environment.

torchrun sets RANK and its kin; the plan's pods set NODE_NAME and the TOPOLAB_ names.
"""

import json
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, get_args

from trainer.config import TrainConfig
from trainer.record import LinkShaping


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where this process stands in its run, and the folders and addresses that it was given."""

    rank: int
    ranks: int
    local_rank: int
    local_ranks: int
    pod: int
    hostname: str
    node: str
    records_uri: str
    link_shaping: LinkShaping
    restarts: int
    """How often the job was started over before this start."""
    cache: Path
    checkpoints: Path
    log_folder: Path | None
    """Where torchrun tees this rank's output; None without its --log-dir."""
    nccl_log: Path | None
    hugging_face_token: str | None


@dataclass(frozen=True, kw_only=True)
class PodPlace:
    """Where a pod of a wrapped job stands, and where its records go."""

    pod: int
    master_address: str
    master_port: int
    hostname: str
    node: str
    records_uri: str
    link_shaping: LinkShaping
    restarts: int
    cache: Path


def read_pod(variables: Mapping[str, str] = os.environ) -> PodPlace:
    """The place of this pod, from what Kubeflow Trainer tells torchrun (PET_); alone where nothing is said."""
    hostname = socket.gethostname()
    return PodPlace(
        pod=_number(variables, "PET_NODE_RANK") if variables.get("PET_NODE_RANK") else 0,
        master_address=variables.get("PET_MASTER_ADDR") or "127.0.0.1",
        master_port=_number(variables, "PET_MASTER_PORT") if variables.get("PET_MASTER_PORT") else 29500,
        hostname=hostname,
        node=variables.get("NODE_NAME") or hostname,
        records_uri=_records_uri(variables),
        link_shaping=_link_shaping(variables),
        restarts=_number(variables, "TOPOLAB_RESTARTS") if variables.get("TOPOLAB_RESTARTS") else 0,
        cache=_cache(variables),
    )


def inherited(changes: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process to be started: this one's with changes."""
    return {**os.environ, **changes}


def read_place(variables: Mapping[str, str] = os.environ) -> Place:
    """The place of this process; a ValueError names the variable that is missing or wrong."""
    hostname = socket.gethostname()
    cache = _cache(variables)
    error_file = variables.get("TORCHELASTIC_ERROR_FILE")
    return Place(
        rank=_number(variables, "RANK"),
        ranks=_number(variables, "WORLD_SIZE"),
        local_rank=_number(variables, "LOCAL_RANK"),
        local_ranks=_number(variables, "LOCAL_WORLD_SIZE"),
        pod=_number(variables, "GROUP_RANK"),
        hostname=hostname,
        node=variables.get("NODE_NAME") or hostname,
        records_uri=_records_uri(variables),
        link_shaping=_link_shaping(variables),
        restarts=_number(variables, "TOPOLAB_RESTARTS") if variables.get("TOPOLAB_RESTARTS") else 0,
        cache=cache,
        checkpoints=Path(variables.get("TOPOLAB_CHECKPOINTS") or cache / "checkpoints"),
        log_folder=Path(error_file).parent if error_file else None,
        nccl_log=_nccl_log(variables, hostname),
        hugging_face_token=variables.get("HF_TOKEN") or None,
    )


def check_places(config: TrainConfig, place: Place) -> None:
    """Raise a ValueError where torchrun started other processes than the config's topology asks for."""
    for what, started, planned in (
        ("ranks (WORLD_SIZE)", place.ranks, config.ranks),
        ("ranks in this pod (LOCAL_WORLD_SIZE)", place.local_ranks, config.ranks_per_pod),
    ):
        if started != planned:
            raise ValueError(
                f"torchrun started {started} {what}, the config's topology {config.topology} has {planned}; "
                f"start {config.pods} x `torchrun --nnodes {config.pods} "
                f"--nproc-per-node {config.ranks_per_pod}`"
            )


def tell_launcher(reason: str, variables: Mapping[str, str] = os.environ) -> None:
    """Leave the reason of this rank's failure where torchrun looks for it (torch.distributed.elastic's error file).

    Its account of a failure then ends with the reason, and so does the log, whose end is all that a pod's status
    keeps. Ended by torchrun or without one, there is nobody to tell.
    """
    file = variables.get("TORCHELASTIC_ERROR_FILE")
    if file:
        told = {"message": reason, "extraInfo": {"py_callstack": reason, "timestamp": str(int(time.time()))}}
        Path(file).write_text(json.dumps({"message": told}))


def leave(code: int) -> NoReturn:
    """End without the interpreter's own clearing up.

    Threads of gloo and DeepSpeed may still run then, and destroying one aborts the process ("terminate called
    without an active exception", once in thirty runs) after all is published: a good run would be reported as
    failed. Everything that must be kept is on disk or published by now.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def prepare_cpu_optimizer(
    place: Place, variables: MutableMapping[str, str] = os.environ, folders: Sequence[Path] | None = None
) -> None:
    """Let DeepSpeed build its CPU Adam: ninja on PATH, and a folder that outlives the pod where one is shared.

    `folders`: where programs of Python packages may lie; None: of this interpreter. Raises ValueError where
    ninja or a C++ compiler is missing.
    """
    variables.setdefault("TORCH_EXTENSIONS_DIR", str(place.cache / "torch_extensions"))
    candidates = _program_folders() if folders is None else folders
    found = [str(folder) for folder in candidates if (folder / "ninja").is_file()]
    path = os.pathsep.join([*found[:1], variables.get("PATH", "")])
    variables["PATH"] = path
    for tool, remedy in (("ninja", "pip install ninja"), ("c++", "install a C++ compiler")):
        if shutil.which(tool, path=path) is None:
            raise ValueError(
                f"the recipe keeps the optimizer on the CPU, and DeepSpeed builds it with {tool}: {remedy}"
            )


def _program_folders() -> list[Path]:
    """Beside the interpreter, and in `bin` of each folder of packages: `pip --target` puts programs there."""
    return [Path(sys.executable).parent, *(Path(folder) / "bin" for folder in sys.path)]


def _number(variables: Mapping[str, str], name: str) -> int:
    text = variables.get(name)
    if text is None:
        raise ValueError(f"environment: {name} is not set; start the trainer with `python -m torch.distributed.run`")
    if not text.isdigit():
        raise ValueError(f"environment: {name} is {text!r}, a number is needed")
    return int(text)


def _cache(variables: Mapping[str, str]) -> Path:
    return Path(variables.get("TOPOLAB_CACHE") or Path(tempfile.gettempdir()) / "topolab")


def _records_uri(variables: Mapping[str, str]) -> str:
    uri = variables.get("TOPOLAB_RECORDS")
    if not uri:
        raise ValueError(
            "environment: TOPOLAB_RECORDS is not set; give the folder for run records, e.g. file:///records"
        )
    return uri.rstrip("/")


def _link_shaping(variables: Mapping[str, str]) -> LinkShaping:
    match variables.get("TOPOLAB_LINK_SHAPING"):
        case None | "" | "undialled":
            return "undialled"
        case "shaped":
            return "shaped"
        case "unshaped":
            return "unshaped"
        case other:
            words = ", ".join(get_args(LinkShaping))
            raise ValueError(f"environment: TOPOLAB_LINK_SHAPING is {other!r}, one of {words} is needed")


def _nccl_log(variables: Mapping[str, str], hostname: str) -> Path | None:
    """NCCL_DEBUG_FILE with %h and %p filled in as NCCL does it."""
    pattern = variables.get("NCCL_DEBUG_FILE")
    return Path(pattern.replace("%h", hostname).replace("%p", str(os.getpid()))) if pattern else None
