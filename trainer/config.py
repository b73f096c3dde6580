"""TrainConfig: the one file that the trainer gets, and that its record carries on.

`workloads.planning` writes it, `python -m trainer --config FILE` reads it. What the trainer must not
guess stands here: the model's architecture, the resolved recipe, the chip's peak rate, and what the
verdict will hold the run to.
"""

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from trainer.contract import Backend, Contract, LinkClass

CONFIG_SCHEMA = 1


class Architecture(Contract):
    """A Llama-family decoder; every parameter count and FLOP follows from these numbers."""

    hidden_size: int = Field(gt=0)
    intermediate_size: int = Field(gt=0)
    layers: int = Field(gt=0)
    attention_heads: int = Field(gt=0)
    key_value_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    vocabulary_size: int = Field(gt=0)
    tied_embeddings: bool
    max_positions: int = Field(gt=0)
    rope_theta: float = Field(gt=0)


class ModelConfig(Contract):
    """A model by architecture alone (random weights), and the tokenizer that its texts want."""

    name: str
    architecture: Architecture
    tokenizer: str | None
    """Hugging Face id of the tokenizer; None: only the tokenizer trained on the embedded text fits."""


class DataConfig(Contract):
    """What is read and how it is fed."""

    source: str
    """`embedded`, `hf:<id>`, `s3://...` or `file:<path>` (one text file, or a folder of them)."""
    feed: Literal["lines", "packed"]
    """`packed`: texts joined and cut in blocks of sequence_length; `lines`: one line a sample, padded to the
    longest of its micro-batch."""


Engine = Literal["deepspeed", "direct"]
"""What passes through the model and shards its optimizer: DeepSpeed under the Hugging Face Trainer, or the trainer's
own passes and AdamW (trainer.direct), which know Llama-family decoders and ZeRO stage 1 alone."""


class ZeroConfig(Contract):
    """DeepSpeed ZeRO, every value stated: nothing is left to `auto`.

    Bucket, live, reuse and persistence values count elements, not bytes (DeepSpeed's own unit).
    """

    stage: Literal[1, 2, 3]
    offload_optimizer: bool = False
    offload_parameters: bool = False
    overlap_communication: bool = True
    contiguous_gradients: bool = True
    sub_group_size: int = Field(gt=0)
    reduce_bucket_size: int = Field(gt=0)
    prefetch_bucket_size: int = Field(ge=0)
    persistence_threshold: int = Field(ge=0)
    max_live_parameters: int = Field(ge=0)
    max_reuse_distance: int = Field(ge=0)
    gather_16bit_weights_on_save: bool = False


class RecipeConfig(Contract):
    """How the trainer uses memory and links, resolved."""

    name: str
    engine: Engine = "deepspeed"
    zero: ZeroConfig
    micro_batch: int = Field(gt=0)
    """Sequences per rank in one forward pass."""
    accumulation: int = Field(gt=0)
    """Forward passes per optimizer step."""
    activation_checkpointing: bool
    learning_rate: float = Field(gt=0)
    gradient_clipping: float = Field(gt=0)
    omp_threads: int | None = Field(gt=0)
    """Threads a rank; None: torchrun's own choice, as the seeds had it."""
    save_at_end: bool = False

    @model_validator(mode="after")
    def _engine_can(self) -> "RecipeConfig":
        """Our own engine shards the optimizer alone, on the device."""
        if self.engine == "direct" and (self.zero.stage != 1 or self.zero.offload_optimizer):
            offload = " with the optimizer offloaded" if self.zero.offload_optimizer else ""
            raise ValueError(
                f"recipe {self.name}: engine direct does ZeRO stage 1 on the device, not stage {self.zero.stage}"
                f"{offload}; set stage 1 without offload, or engine deepspeed"
            )
        return self


class LinkExpectation(Contract):
    """What one link class must show. Empty `expected` means that no pair of this class exists."""

    link_class: LinkClass
    pairs: int = Field(ge=0)
    """Unordered pairs of ranks of this class."""
    expected: tuple[str, ...]
    """What pairs of the class may use, and nothing else: `P2P`, `P2P+read` (the receiver reads), `SHM`,
    `NET/Libfabric`, `NET/Libfabric+GDRDMA`, `NET/Socket`, `TCP` (gloo between pods), `loopback` (gloo inside a
    pod)."""
    forbidden: tuple[str, ...]
    """Named because it is what a wrong set-up would fall back to; anything else unexpected is wrong as well."""


class ExpectedBytes(Contract):
    """Bytes that one pod sends in one optimizer step, by the backend's formula."""

    counter: Literal["interface", "efa"]
    """`interface`: the pod's own network interfaces but for lo; `efa`: the EFA devices' tx_bytes."""
    per_pod_and_step: float = Field(ge=0)
    formula: str
    relative_tolerance: float = Field(gt=0)
    absolute_tolerance_per_step: float = Field(ge=0)
    """Bytes of bookkeeping that may cross where the formula says 0."""


class Expectations(Contract):
    """What the verdict holds the run to."""

    nodes: int = Field(gt=0)
    efa_devices_per_pod: int = Field(ge=0)
    links: tuple[LinkExpectation, ...]
    bytes_sent: ExpectedBytes | None
    """None: the plan knows no formula for this topology; the counters are then recorded but not judged."""
    link_rate_bits_per_s: float | None
    """The rate that the topology's name dials (local machines), else None."""


class PredictedRange(Contract):
    """Low, expected and high value; the unit stands in the name of the field."""

    low: float
    expected: float
    high: float


class PredictedRun(Contract):
    """What was said before the run; the record keeps it, so that a later model can't reword it."""

    step_s: PredictedRange
    parts_s: dict[str, float]
    """Expected seconds of one step by part: compute, exposed communication, host copies, optimizer."""
    slowest_link: str
    """What the slowest hop runs over, in words."""


class Rental(Contract):
    """How the nodes are paid for."""

    region: str | None
    capacity: Literal["onDemand", "spot", "reservation", "capacityBlock", "local"]
    usd_per_node_hour: float | None
    """On-demand price; None: not known (spot, blocks, other regions) or nothing to pay (local)."""
    price_source: str | None
    """Whose price, of which region and day."""


class TrainConfig(Contract):
    """Everything that one run of the trainer needs, and nothing that it must look up elsewhere."""

    config_schema: Literal[1] = 1
    command: tuple[str, ...] | None
    """What `trainer.prove` wrapped; model, data and recipe are then the plan's and not the job's. None: our trainer."""
    experiment: str
    """Name of the experiment, or of the stack."""
    arm: str
    topology: str
    machine: str
    job_name: str
    attempt: int = Field(gt=0)
    pods: int = Field(gt=0)
    ranks_per_pod: int = Field(gt=0)
    backend: Backend
    peak_flops_per_s: float | None
    """Dense bf16 peak of one GPU; None: unknown, and MFU is then absent."""
    model: ModelConfig
    data: DataConfig
    recipe: RecipeConfig
    sequence_length: int = Field(gt=0)
    steps: int = Field(ge=0)
    """0: probe and stop."""
    warmup_steps: int = Field(ge=0)
    """Steps before the timed window; they are part of `steps`."""
    probe_s: float = Field(ge=0, le=60)
    """Seconds that the probe of links and devices takes before step 1, about; 0: none."""
    seed: int = Field(ge=0)
    checkpoint_every_steps: int | None = Field(gt=0)
    resume: bool
    """Go on from the newest complete checkpoint of this job, and save one when interrupted."""
    hang_s: float = Field(gt=0, le=900)
    """Seconds without progress after which the run is ended as hung; the first step and a checkpoint get 900."""
    on_wrong_link: Literal["stop", "record"]
    on_nan_loss: Literal["stop", "skip"]
    """A loss or gradient that isn't finite: end the run, or leave that step's update out. INVALID either way."""
    expectations: Expectations
    predicted: PredictedRun
    rental: Rental
    image: str | None
    cpus_per_rank: float = Field(gt=0)
    memory_gib_per_rank: float = Field(gt=0)

    @property
    def ranks(self) -> int:
        """World size."""
        return self.pods * self.ranks_per_pod

    @property
    def sequences_per_step(self) -> int:
        """Sequences of one optimizer step over all ranks."""
        return self.recipe.micro_batch * self.recipe.accumulation * self.ranks

    @property
    def token_slots_per_step(self) -> int:
        """Token slots (padding included) of one optimizer step."""
        return self.sequences_per_step * self.sequence_length


def read_config(path: Path) -> TrainConfig:
    """Read a TrainConfig; a ValueError names the file, the fields and what is wrong with them."""
    try:
        text = path.read_text()
    except OSError as error:
        raise ValueError(f"{path}: can't be read ({error.strerror}); give the file with --config") from error
    try:
        return TrainConfig.model_validate_json(text)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ValueError(f"{path}: not a config of schema {CONFIG_SCHEMA}: {faults}") from error
