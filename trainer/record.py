"""The run record: the files that a run writes about itself. Schema 1.

    <run id>/record.json                 RunRecord: what ran, on what, and what follows from the lines
    <run id>/steps/rank-00000.jsonl      StepLine per optimizer step, one file a rank
    <run id>/logs/rank-00000.log         everything that the rank printed
    <run id>/nccl/rank-00000.log         NCCL's own log of that rank (nccl backend only)
    <run id>/topology.txt                `nvidia-smi topo -m` of each pod (GPU machines only)

Facts and lines are written; `summary` and `verdict` are computed from them by pure functions and can be
recomputed by anyone.
"""

from typing import Literal

from pydantic import Field

from trainer.config import TrainConfig
from trainer.contract import Contract, LinkClass

RECORD_SCHEMA = 1

Phase = Literal["warmup", "timed"]
Status = Literal["complete", "stopped-wrong-link", "stopped-nan-loss", "hung", "interrupted", "failed"]
Outcome = Literal["VALID", "INVALID", "UNPROVEN"]
LinkShaping = Literal["shaped", "unshaped", "undialled"]
"""`shaped`: the rate of the topology's name was set by tc; `unshaped`: it was named but could not be set;
`undialled`: the topology names no rate."""


class StepLine(Contract):
    """One optimizer step on one rank, from the end of the step before to its own end.

    The time of checkpoints, evaluations and the trainer's own record keeping between two steps is not in
    `seconds`; `data_wait_s` is.
    """

    step: int = Field(gt=0)
    phase: Phase
    seconds: float = Field(gt=0)
    loss: float | None
    """Mean over all ranks' real target tokens; None where a step had none."""
    gradient_norm: float | None
    finite: bool
    """False where the loss or the gradient was not a number: the weights are lost, or this step's update was left
    out."""
    real_tokens: int = Field(ge=0)
    """Tokens of this rank that are not padding."""
    padded_tokens: int = Field(ge=0)
    """Padding slots of this rank; real + padded = slots that the GPU worked through."""
    data_wait_s: float = Field(ge=0)
    checkpoint_s: float = Field(ge=0)
    evaluation_s: float = Field(ge=0)


class InterfaceBytes(Contract):
    """Totals of one network interface or EFA device since its start."""

    name: str
    kind: Literal["interface", "efa"]
    sent: int = Field(ge=0)
    received: int = Field(ge=0)


class CounterSample(Contract):
    """All byte counters that one rank could see at one moment."""

    after_step: int = Field(ge=0)
    unix_s: float
    interfaces: tuple[InterfaceBytes, ...]


class Device(Contract):
    """The accelerator of one rank."""

    name: str
    uuid: str
    pci_bus_id: str
    memory_bytes: int


class Clock(Contract):
    """Where one rank's wall time went, in seconds; the parts don't overlap."""

    import_s: float = Field(ge=0)
    rendezvous_s: float = Field(ge=0)
    probe_s: float = Field(ge=0)
    data_s: float = Field(ge=0)
    model_s: float = Field(ge=0)
    warmup_s: float = Field(ge=0)
    timed_s: float = Field(ge=0)
    checkpoint_s: float = Field(ge=0)
    evaluation_s: float = Field(ge=0)
    bookkeeping_s: float = Field(ge=0)
    """The trainer's own record keeping inside the timed window; in no step's seconds."""


class Connection(Contract):
    """One established TCP connection of a rank's process, as /proc/net/tcp* shows it."""

    local_address: str
    remote_address: str


class RankFacts(Contract):
    """One rank's own view."""

    rank: int = Field(ge=0)
    local_rank: int = Field(ge=0)
    pod: int = Field(ge=0)
    hostname: str
    node: str
    """Kubernetes node name, else the hostname of the machine."""
    addresses: tuple[str, ...]
    """Addresses of this pod's interfaces, lo included."""
    device: Device | None
    efa_devices: tuple[str, ...]
    nccl_nics_found: int | None
    """NICs that NCCL's network plugin says it found (`found N nics`); None: no such line."""
    connections: tuple[Connection, ...]
    """Established connections between ranks (gloo's evidence), taken inside the timed window."""
    counters: tuple[CounterSample, ...]
    """The first and the last sample bound the timed window."""
    peak_allocated_bytes: int | None
    peak_reserved_bytes: int | None
    peak_resident_bytes: int = Field(ge=0)
    omp_threads: int = Field(gt=0)
    clock: Clock


class DataFacts(Contract):
    """What was read."""

    sha256: str
    """Of the texts as fed, so of content and order."""
    tokenizer_sha256: str
    texts: int
    tokens: int
    samples: int


class Transport(Contract):
    """What one pair of ranks really used."""

    from_rank: int
    to_rank: int
    link_class: LinkClass
    transport: str
    """As in LinkExpectation.expected."""
    detail: str
    """The source's own words, e.g. `NET/Libfabric/0/GDRDMA` or `10.90.0.1 -> 10.90.0.2`."""
    channels: int = Field(ge=0)


class LinkProbe(Contract):
    """What one pod sent flat out for a moment before the warm-up: the rate that its link really lets through."""

    sent_bytes: int = Field(ge=0)
    seconds: float = Field(gt=0)


Collective = Literal["all-reduce", "all-gather", "reduce-scatter"]


class SweepPoint(Contract):
    """One collective at one size."""

    collective: Collective
    size_bytes: int = Field(gt=0)
    """Of the whole tensor, as nccl-tests counts it: what is reduced, or what all parts make together."""
    calls: int = Field(gt=0)
    """Timed together, after one that warmed up."""
    seconds: float = Field(gt=0)
    """Of one call, on the rank that took longest."""


class Sweep(Contract):
    """Collectives over growing sizes, in groups whose rings cross links of one class at most."""

    link_class: LinkClass
    ranks: int = Field(gt=1)
    """Of a group; on a gang of unequal groups, of rank 0's."""
    groups: int = Field(gt=0)
    """That did the same at once."""
    points: tuple[SweepPoint, ...]


class PairProbe(Contract):
    """Two ranks that sent each other a message at the same time."""

    one: int = Field(ge=0)
    other: int = Field(ge=0)
    link_class: LinkClass
    size_bytes: int = Field(gt=0)
    """Each way."""
    seconds: float = Field(gt=0)


class DeviceProbe(Contract):
    """What one rank's accelerator gave while all did the same; without one, its cores and memory."""

    rank: int = Field(ge=0)
    matmul_flops_per_s: float = Field(gt=0)
    to_device_bytes_per_s: float = Field(gt=0)
    to_host_bytes_per_s: float = Field(gt=0)


class Probe(Contract):
    """The microbenchmarks before step 1; what they mean is computed by `trainer.bandwidth`."""

    seconds: float = Field(gt=0)
    sweeps: tuple[Sweep, ...]
    """From the narrowest group to all ranks; empty for one rank."""
    pairs: tuple[PairProbe, ...]
    devices: tuple[DeviceProbe, ...]
    pods: tuple[tuple[CounterSample, CounterSample], ...]
    """Byte counters of each pod before and after the sweeps."""


class Hang(Contract):
    """Why a run that went on no more was ended."""

    step: int = Field(ge=0)
    """That was under way."""
    waited_s: float = Field(gt=0)
    ranks: tuple[int, ...]
    """That held the others up; empty where all were in the same collective."""
    sentence: str


class Summary(Contract):
    """Figures of the timed window, computed from the lines of all ranks.

    A step's time is the slowest rank's. None: not known, never guessed.
    """

    timed_steps: int
    step_s_median: float | None
    step_s_p10: float | None
    step_s_p90: float | None
    step_s_mean: float | None
    real_tokens_per_s: float | None
    slots_per_s: float | None
    model_flops_per_s_per_rank: float | None
    mfu: float | None
    data_wait_share: float | None
    first_loss: float | None
    last_loss: float | None
    sent_bytes_per_pod_and_step: float | None
    """On the counter that the expectations name, median over pods."""


class Verdict(Contract):
    """VALID, INVALID (with reasons) or UNPROVEN (evidence missing, with what is missing)."""

    outcome: Outcome
    reasons: tuple[str, ...]


class RunRecord(Contract):
    """record.json."""

    record_schema: Literal[1] = 1
    run_id: str
    status: Status
    started_at: str
    """UTC, ISO 8601."""
    finished_at: str
    starts: int = Field(gt=0)
    """Starts of the job so far, this one included; each start that ended in order left a record."""
    resumed_after_step: int = Field(ge=0)
    """The step of the checkpoint that this start went on from; 0: it began at step 1."""
    config: TrainConfig
    versions: dict[str, str]
    data: DataFacts | None
    """None: the run read none (`steps: 0`)."""
    model_parameters: int | None
    """None: of a job that isn't ours."""
    kernels: dict[str, str] = Field(default_factory=dict)
    """What computed the decoder, by part, and why nothing faster; empty where it is the model's own business
    (engine `deepspeed`)."""
    link_shaping: LinkShaping
    link_probe: LinkProbe | None
    """Of the pod that sent most; None where no rate is dialled."""
    probe: Probe | None
    """None where the config asks for none."""
    hang: Hang | None
    """Of a run whose status is `hung`."""
    ranks: tuple[RankFacts, ...]
    transports: tuple[Transport, ...]
    summary: Summary
    verdict: Verdict
