"""Runs of the real trainer on this machine: torchrun, gloo on loopback, a tiny model."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.config import (
    Architecture,
    DataConfig,
    Expectations,
    LinkExpectation,
    ModelConfig,
    PredictedRange,
    PredictedRun,
    RecipeConfig,
    Rental,
    TrainConfig,
    ZeroConfig,
)
from trainer.record import RunRecord, StepLine

TINY = Architecture(
    hidden_size=64,
    intermediate_size=176,
    layers=2,
    attention_heads=4,
    key_value_heads=2,
    head_dim=16,
    vocabulary_size=1000,
    tied_embeddings=False,
    max_positions=512,
    rope_theta=10_000.0,
)

ZERO_3 = ZeroConfig(
    stage=3,
    sub_group_size=1_000_000_000,
    reduce_bucket_size=200_000_000,
    prefetch_bucket_size=200_000_000,
    persistence_threshold=0,
    max_live_parameters=1_000_000_000,
    max_reuse_distance=1_000_000_000,
)

RECIPE = RecipeConfig(
    name="test",
    zero=ZERO_3,
    micro_batch=2,
    accumulation=2,
    activation_checkpointing=False,
    learning_rate=1e-3,
    gradient_clipping=1.0,
    omp_threads=1,
)


def tiny_config(**changes: Any) -> TrainConfig:
    """Two ranks in one pod, 6 steps of which 2 are warm-up."""
    config = TrainConfig(
        command=None,
        experiment="test",
        arm="one-pod",
        topology="cpu-1x2-local",
        machine="cpu",
        job_name="test-1",
        attempt=1,
        pods=1,
        ranks_per_pod=2,
        backend="gloo",
        peak_flops_per_s=None,
        model=ModelConfig(name="tiny", architecture=TINY, tokenizer=None),
        data=DataConfig(source="embedded", feed="packed"),
        recipe=RECIPE,
        sequence_length=32,
        steps=6,
        warmup_steps=2,
        probe_s=0.5,
        seed=7,
        checkpoint_every_steps=None,
        resume=False,
        hang_s=60.0,
        on_wrong_link="stop",
        on_nan_loss="stop",
        predicted=PredictedRun(
            step_s=PredictedRange(low=0.1, expected=0.2, high=0.4), parts_s={"compute": 0.2}, slowest_link="none"
        ),
        rental=Rental(region=None, capacity="local", usd_per_node_hour=None, price_source=None),
        expectations=Expectations(
            nodes=1,
            efa_devices_per_pod=0,
            links=(
                LinkExpectation(link_class="same-pod", pairs=1, expected=("loopback",), forbidden=("TCP",)),
                LinkExpectation(link_class="same-node", pairs=0, expected=(), forbidden=()),
                LinkExpectation(link_class="other-node", pairs=0, expected=(), forbidden=()),
            ),
            bytes_sent=None,
            link_rate_bits_per_s=None,
        ),
        image=None,
        cpus_per_rank=1.0,
        memory_gib_per_rank=2.0,
    )
    return config.model_copy(update=changes)


@dataclass(frozen=True)
class Ended:
    """A run that is over."""

    exit_code: int
    output: str
    records: Path

    @property
    def folder(self) -> Path:
        """The one run folder that was published."""
        (folder,) = self.records.iterdir()
        return folder

    @property
    def record(self) -> RunRecord:
        return RunRecord.model_validate_json((self.folder / "record.json").read_text())

    def steps(self, rank: int = 0) -> list[StepLine]:
        lines = (self.folder / "steps" / f"rank-{rank:05d}.jsonl").read_text().splitlines()
        return [StepLine.model_validate_json(line) for line in lines]

    def losses(self, rank: int = 0) -> dict[int, float | None]:
        return {line.step: line.loss for line in self.steps(rank)}


class Started:
    """The torchruns of one run, one a pod."""

    def __init__(
        self,
        config: TrainConfig | str,
        folder: Path,
        cache: Path,
        *,
        environment: Mapping[str, str] | None = None,
        pods: int | None = None,
        ranks_per_pod: int | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.records = folder / "records"
        self.logs = folder / "logs"
        file = folder / "config.json"
        file.write_text(config if isinstance(config, str) else config.model_dump_json())
        known = config if isinstance(config, TrainConfig) else tiny_config()
        self._environment = environment_of(self.records, cache, environment or {})
        self._port = free_port()
        self._earlier = set(self._step_files("*"))
        self._pods = [
            self._torchrun(file, pod, pods or known.pods, ranks_per_pod or known.ranks_per_pod)
            for pod in range(pods or known.pods)
        ]

    def wait(self, timeout_s: float = 300) -> Ended:
        """The exit code of pod 0, and what all pods printed."""
        outputs = [pod.communicate(timeout=timeout_s)[0] for pod in self._pods]
        return Ended(self._pods[0].returncode, "\n".join(outputs), self.records)

    def terminate_rank(self, rank: int, after_step: int) -> None:
        """SIGTERM to one rank, once it has written a step's line."""
        self.signal_rank(rank, after_step, signal.SIGTERM)

    def kill_rank(self, rank: int, after_step: int) -> None:
        """SIGKILL to one rank, once it has written a step's line."""
        self.signal_rank(rank, after_step, signal.SIGKILL)

    def wait_for(self, happened: Callable[[], bool]) -> None:
        """Until that has happened, while the run lives."""
        deadline = time.monotonic() + 300
        while not happened():
            assert time.monotonic() < deadline, "it never came"
            assert all(pod.poll() is None for pod in self._pods), "the run ended early"
            time.sleep(0.01)

    def signal_rank(self, rank: int, after_step: int, number: signal.Signals) -> None:
        """A signal to one rank, once it has written a step's line."""
        self.wait_for(lambda: self._wrote(rank, after_step))
        os.kill(self._process_of(rank), number)

    def _wrote(self, rank: int, step: int) -> bool:
        own = [file for file in self._step_files(f"{rank:05d}") if file not in self._earlier]
        return any(json.loads(line)["step"] >= step for file in own for line in file.read_text().splitlines())

    def _step_files(self, rank: str) -> list[Path]:
        return list(Path(self._environment["TOPOLAB_CACHE"]).glob(f"records/*/steps/rank-{rank}.jsonl"))

    def _process_of(self, rank: int) -> int:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                variables = (process / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            mine = f"MASTER_PORT={self._port}".encode() in variables
            if mine and f"RANK={rank}".encode() in variables:
                return int(process.name)
        raise AssertionError(f"rank {rank} doesn't run")

    def _torchrun(self, file: Path, pod: int, pods: int, ranks: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "torch.distributed.run"),
                *(f"--nnodes={pods}", f"--nproc-per-node={ranks}", f"--node-rank={pod}"),
                *("--master-addr=127.0.0.1", f"--master-port={self._port}"),
                *("--tee=3", f"--log-dir={self.logs / str(pod)}"),
                *("-m", "trainer", "--config", str(file)),
            ],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def environment_of(records: Path, cache: Path, changes: Mapping[str, str]) -> dict[str, str]:
    root = str(Path(__file__).parents[2])
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return (
        inherited
        | {
            "PYTHONPATH": root,
            "TOPOLAB_RECORDS": f"file:{records}",
            "TOPOLAB_CACHE": str(cache),
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "GLOO_SOCKET_IFNAME": "lo",
            "NODE_NAME": "this-machine",
        }
        | dict(changes)
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
