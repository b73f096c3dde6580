"""Complete run records on disk, from a few numbers: raw evidence is written as a run would leave it, and the
real pure functions compute transports, summary and verdict from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np

from trainer.config import (
    Architecture,
    DataConfig,
    Expectations,
    ModelConfig,
    PredictedRange,
    PredictedRun,
    RecipeConfig,
    Rental,
    TrainConfig,
    ZeroConfig,
)
from trainer.contract import Backend
from trainer.flops import parameters
from trainer.record import (
    Clock,
    Connection,
    CounterSample,
    DataFacts,
    Device,
    InterfaceBytes,
    LinkShaping,
    Probe,
    RankFacts,
    RunRecord,
    Status,
    StepLine,
)
from trainer.summary import summarize
from trainer.verdict import Start, judge, transports
from workloads.planning.expectations import possible_expectations

STARTED = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
WARMUP_STEPS = 2
SLUGS = {"cpu": "cpu", "p4d.24xlarge": "p4d24xl"}


@dataclass(frozen=True, kw_only=True)
class Made:
    """One synthetic run. `step_s` holds the timed steps; two warm-up steps come before them."""

    arm: str = "two-pods-slow"
    machine: str = "cpu"
    pods: int = 2
    ranks_per_pod: int = 1
    nodes: int = 1
    backend: Backend = "gloo"
    efa_devices: int = 0
    network_path: str = "NET/Libfabric/0/GDRDMA"
    step_s: tuple[float, ...] = (1.0,) * 20
    sent_per_step: float = 2.0e6
    vocabulary: int = 4630
    """The model's size follows: with this one each of two gloo ranks sends 2.0 MB a step by the formula."""
    rate_bits_per_s: float | None = 50e6
    link_shaping: LinkShaping = "shaped"
    status: Status = "complete"
    loss_offset: float = 0.0
    real_share: float = 1.0
    data_wait_s: float = 0.01
    peak_flops_per_s: float | None = None
    versions: Mapping[str, str] = field(default_factory=lambda: {"torch": "2.15.0", "deepspeed": "0.19.8"})
    config: Mapping[str, Any] = field(default_factory=dict)
    """Fields of TrainConfig to replace."""
    probe: Probe | None = None

    @property
    def topology(self) -> str:
        """The name that a plan of these pods would have."""
        crossing = f"efa{self.efa_devices}" if self.efa_devices else "local" if self.pods == 1 else "tcp"
        rate = "" if self.rate_bits_per_s is None else f"-{self.rate_bits_per_s / 1e6:.0f}mbit"
        alone = "-hostnet" if self.nodes > 1 else ""
        return f"{SLUGS[self.machine]}-{self.pods}x{self.ranks_per_pod}-{crossing}{rate}{alone}"

    @property
    def ranks(self) -> int:
        return self.pods * self.ranks_per_pod


def one_pod(**changes: Any) -> Made:
    """Two gloo ranks in one pod: nothing crosses."""
    return replace(
        Made(
            arm="one-pod",
            pods=1,
            ranks_per_pod=2,
            sent_per_step=0.0,
            rate_bits_per_s=None,
            link_shaping="undialled",
            step_s=(0.2,) * 20,
        ),
        **changes,
    )


def two_pods(**changes: Any) -> Made:
    """Two pods of one gloo rank over a dialled link."""
    return replace(Made(), **changes)


def efa_nodes(**changes: Any) -> Made:
    """Two p4d nodes of two GPUs each: P2P inside, EFA with GPUDirect across; each rank sends 2.0 MB a step."""
    return replace(
        Made(
            arm="p4d24xl-2x2-efa1",
            machine="p4d.24xlarge",
            ranks_per_pod=2,
            nodes=2,
            backend="nccl",
            efa_devices=1,
            rate_bits_per_s=None,
            link_shaping="undialled",
            peak_flops_per_s=312e12,
        ),
        **changes,
    )


def noisy(median_s: float, *, steps: int, spread: float, seed: int) -> tuple[float, ...]:
    """Log-normal step times, correlated from step to step as on a real machine, seeded."""
    noise = np.random.default_rng(seed).normal(0.0, spread, steps)
    for index in range(1, steps):
        noise[index] += 0.5 * noise[index - 1]
    return tuple(float(value) for value in median_s * np.exp(noise - np.median(noise)))


def write_run(made: Made, folder: Path, run_id: str) -> Path:
    """Write `<folder>/<run id>/` and return it."""
    place = folder / run_id
    record = record_of(made, run_id)
    for name in ("steps", "logs", "nccl") if made.backend == "nccl" else ("steps", "logs"):
        (place / name).mkdir(parents=True)
    for rank, lines in steps_of(made).items():
        text = "".join(line.model_dump_json() + "\n" for line in lines)
        (place / "steps" / f"rank-{rank:05}.jsonl").write_text(text)
        (place / "logs" / f"rank-{rank:05}.log").write_text(f"rank {rank} of {made.ranks}\n")
    for rank, text in nccl_logs_of(made).items():
        (place / "nccl" / f"rank-{rank:05}.log").write_text(text)
    (place / "record.json").write_text(record.model_dump_json(indent=2) + "\n")
    return place


def record_of(made: Made, run_id: str) -> RunRecord:
    config, ranks, steps = config_of(made), facts_of(made), steps_of(made)
    seen = transports(config, ranks, nccl_logs_of(made))
    start = Start(resumed_after_step=0, link_probe=None, probe=made.probe)
    finished = STARTED + timedelta(seconds=40 + sum(made.step_s))
    return RunRecord(
        run_id=run_id,
        status=made.status,
        started_at=STARTED.isoformat(),
        finished_at=finished.isoformat(),
        starts=1,
        resumed_after_step=0,
        config=config,
        versions=dict(made.versions),
        data=DataFacts(sha256="d" * 64, tokenizer_sha256="e" * 64, texts=100, tokens=50_000, samples=400),
        model_parameters=parameters(config.model.architecture),
        link_shaping=made.link_shaping,
        link_probe=None,
        probe=made.probe,
        hang=None,
        ranks=tuple(ranks),
        transports=seen,
        summary=summarize(config, steps, ranks),
        verdict=judge(config, made.status, made.link_shaping, ranks, seen, steps, start=start),
    )


def config_of(made: Made) -> TrainConfig:
    config = TrainConfig(
        command=None,
        experiment="lab",
        arm=made.arm,
        topology=made.topology,
        machine=made.machine,
        job_name=f"{made.topology}-1",
        attempt=1,
        pods=made.pods,
        ranks_per_pod=made.ranks_per_pod,
        backend=made.backend,
        peak_flops_per_s=made.peak_flops_per_s,
        model=_model(made),
        data=DataConfig(source="embedded", feed="packed" if made.real_share == 1 else "lines"),
        recipe=RECIPE,
        sequence_length=128,
        steps=WARMUP_STEPS + len(made.step_s),
        warmup_steps=WARMUP_STEPS,
        probe_s=0.0,
        seed=7,
        checkpoint_every_steps=None,
        resume=False,
        hang_s=60.0,
        on_wrong_link="stop",
        on_nan_loss="stop",
        expectations=NOTHING_EXPECTED,
        predicted=PREDICTED,
        rental=Rental(region=None, capacity="local", usd_per_node_hour=None, price_source=None),
        image=None,
        cpus_per_rank=1.0,
        memory_gib_per_rank=4.0,
    )
    config = config.model_copy(update=dict(made.config))
    (expectations,) = possible_expectations(config)
    return config.model_copy(update={"expectations": expectations})


def facts_of(made: Made) -> list[RankFacts]:
    return [_rank_facts(made, rank) for rank in range(made.ranks)]


def steps_of(made: Made) -> dict[int, list[StepLine]]:
    seconds = (*_warmup_s(made), *made.step_s)
    return {rank: [_line(made, i, s) for i, s in enumerate(seconds, 1)] for rank in range(made.ranks)}


def nccl_logs_of(made: Made) -> dict[int, str]:
    if made.backend != "nccl":
        return {}
    return {rank: "\n".join(_nccl_lines(made, rank)) + "\n" for rank in range(made.ranks)}


def _model(made: Made) -> ModelConfig:
    architecture = Architecture(
        hidden_size=64,
        intermediate_size=128,
        layers=2,
        attention_heads=4,
        key_value_heads=2,
        head_dim=16,
        vocabulary_size=made.vocabulary,
        tied_embeddings=False,
        max_positions=512,
        rope_theta=10_000.0,
    )
    return ModelConfig(name="tiny", architecture=architecture, tokenizer=None)


RECIPE = RecipeConfig(
    name="tiny",
    zero=ZeroConfig(
        stage=3,
        sub_group_size=10**9,
        reduce_bucket_size=10**6,
        prefetch_bucket_size=10**6,
        persistence_threshold=0,
        max_live_parameters=10**9,
        max_reuse_distance=10**9,
    ),
    micro_batch=4,
    accumulation=1,
    activation_checkpointing=False,
    learning_rate=1e-3,
    gradient_clipping=1.0,
    omp_threads=1,
)

NOTHING_EXPECTED = Expectations(nodes=1, efa_devices_per_pod=0, links=(), bytes_sent=None, link_rate_bits_per_s=None)
"""Until the config is whole and the expectations can be derived from it."""

PREDICTED = PredictedRun(
    step_s=PredictedRange(low=0.05, expected=0.1, high=0.4),
    parts_s={"compute": 0.08, "exposed communication": 0.02},
    slowest_link="TCP at 0.05 Gbit/s, dialled",
)


def _rank_facts(made: Made, rank: int) -> RankFacts:
    pod, local_rank = divmod(rank, made.ranks_per_pod)
    gpu = made.backend == "nccl"
    return RankFacts(
        rank=rank,
        local_rank=local_rank,
        pod=pod,
        hostname=f"job-node-0-{pod}",
        node=f"node-{pod % made.nodes}",
        addresses=("127.0.0.1", _address(pod)),
        device=Device(name="A100", uuid=f"GPU-{rank}", pci_bus_id="10:1d.0", memory_bytes=42 * 10**9) if gpu else None,
        efa_devices=_efa_names(made),
        nccl_nics_found=made.efa_devices if gpu else None,
        connections=() if gpu else tuple(_connections(made, rank)),
        counters=_counters(made),
        peak_allocated_bytes=3 * 10**9 if gpu else None,
        peak_reserved_bytes=4 * 10**9 if gpu else None,
        peak_resident_bytes=900_000_000,
        omp_threads=1,
        clock=_clock(made),
    )


def _efa_names(made: Made) -> tuple[str, ...]:
    return tuple(f"rdmap16s{27 + i}" for i in range(made.efa_devices))


def _address(pod: int) -> str:
    return f"10.90.0.{pod + 1}"


def _connections(made: Made, rank: int) -> list[Connection]:
    """One socket for each pair of ranks: the lower rank's port tells its peer, as gloo's full mesh does."""

    def end(own: int, peer: int) -> str:
        return f"{_address(own // made.ranks_per_pod)}:{40_000 + own * 100 + peer}"

    return [
        Connection(local_address=end(rank, peer), remote_address=end(peer, rank))
        for peer in range(made.ranks)
        if peer != rank
    ]


def _counters(made: Made) -> tuple[CounterSample, CounterSample]:
    steps = len(made.step_s)
    kind: Literal["efa", "interface"] = "efa" if made.efa_devices else "interface"
    names = _efa_names(made) or ("eth0",)

    def sample(after_step: int, unix_s: float, sent: int) -> CounterSample:
        each = sent // len(names)
        wires = [InterfaceBytes(name=n, kind=kind, sent=1_000 + each, received=1_000 + each) for n in names]
        loopback = InterfaceBytes(name="lo", kind="interface", sent=sent * 7, received=sent * 7)
        return CounterSample(after_step=after_step, unix_s=unix_s, interfaces=(loopback, *wires))

    start = STARTED.timestamp() + 20
    return (
        sample(WARMUP_STEPS, start, 0),
        sample(WARMUP_STEPS + steps, start + sum(made.step_s), round(made.sent_per_step * steps)),
    )


def _warmup_s(made: Made) -> tuple[float, ...]:
    return () if made.config.get("steps") == 0 else (3.0, 1.5)


def _clock(made: Made) -> Clock:
    return Clock(
        import_s=6.0,
        rendezvous_s=1.0,
        probe_s=0.0,
        data_s=2.0,
        model_s=3.0,
        warmup_s=sum(_warmup_s(made)),
        timed_s=sum(made.step_s),
        checkpoint_s=0.0,
        evaluation_s=0.0,
        bookkeeping_s=0.05,
    )


def _line(made: Made, step: int, seconds: float) -> StepLine:
    recipe, length = made.config.get("recipe", RECIPE), made.config.get("sequence_length", 128)
    slots = recipe.micro_batch * recipe.accumulation * length
    real = round(slots * made.real_share)
    return StepLine(
        step=step,
        phase="warmup" if step <= WARMUP_STEPS else "timed",
        seconds=seconds,
        loss=6.9 - 0.01 * step + made.loss_offset,
        gradient_norm=1.0,
        finite=True,
        real_tokens=real,
        padded_tokens=slots - real,
        data_wait_s=made.data_wait_s,
        checkpoint_s=0.0,
        evaluation_s=0.0,
    )


def _nccl_lines(made: Made, rank: int) -> list[str]:
    """The lines of one rank that matter, in the form of NCCL 2.27."""
    pod, local_rank = divmod(rank, made.ranks_per_pod)
    prefix = f"job-node-0-{pod}:{188 + local_rank}:585 [{local_rank}] NCCL INFO"
    after = (rank + 1) % made.ranks
    inside = after // made.ranks_per_pod == pod
    path = "via P2P/CUMEM/read" if inside else f"[send] via {made.network_path}"
    return [
        f"{prefix} NCCL version 2.27.3+cuda12.9",
        f"{prefix} NET/OFI Initializing aws-ofi-nccl 1.16.2",
        f"{prefix} NET/OFI Selected provider is efa, fabric is efa (found {made.efa_devices} nics)",
        f"{prefix} comm 0x55{rank:02x} rank {rank} nRanks {made.ranks} nNodes {made.pods} "
        f"localRanks {made.ranks_per_pod} localRank {local_rank} MNNVL 0",
        *_channel_lines(prefix, rank, after, path, made.ranks_per_pod),
    ]


def _channel_lines(prefix: str, rank: int, after: int, path: str, ranks_per_pod: int) -> Sequence[str]:
    ends = f"{rank}[{rank % ranks_per_pod}] -> {after}[{after % ranks_per_pod}]"
    return [f"{prefix} Channel {channel:02}/0 : {ends} {path}" for channel in (0, 1)]
