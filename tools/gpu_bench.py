"""Measure on this machine's GPUs what the project promises of its own trainer: `make gpu-bench`.

    peer     our trainer and torchtitan's, one after the other, at equal tokens a GPU and step: the ratio
    links    one pod over NVLink and a pod a GPU over sockets, at equal tokens a step: the ratios

Each prints the table that a diary entry wants, with hardware, versions and date. torchtitan is found where it is
installed for the interpreter that runs this; it is no dependency of ours.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SEQUENCE = 8192

PEER = """
import sys, types
import torch
try:
    import datasets
except ImportError:  # its text feed isn't used: both trainers read random tokens or a text from memory
    for name in ("datasets", "datasets.distributed"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["datasets"].Dataset = object
    sys.modules["datasets"].load_dataset = sys.modules["datasets.distributed"].split_dataset_by_node = None
from dataclasses import replace
from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.protocols.train_spec import get_train_spec, register_train_spec
from torchtitan.train import Trainer, main

class RandomTokens(BaseDataLoader):
    def __init__(self, batch, length, words, rank):
        self.shape, self.words, self.random = (batch, length + 1), words, torch.Generator().manual_seed(rank)
    def __iter__(self):
        while True:
            ids = torch.randint(0, self.words, self.shape, generator=self.random)
            yield {"input": ids[:, :-1].contiguous()}, ids[:, 1:].contiguous()
    def state_dict(self):
        return {}
    def load_state_dict(self, state):
        pass

def loader(dp_world_size, dp_rank, tokenizer, job_config):
    return RandomTokens(job_config.training.local_batch_size, job_config.training.seq_len, 128256, dp_rank)

spec = replace(get_train_spec("llama3"), build_dataloader_fn=loader, build_tokenizer_fn=None)
register_train_spec("llama3_random", spec)
main(Trainer)
"""
"""torchtitan as it is, but for its feed."""

_TITAN_STEP = re.compile(r"step:\s*(\d+)\b.*?tps:\s*([\d,]+)")

EXPERIMENT = """
name: {name}
vary: topology
base:
  topology: $machine-1x$gpus-local
  run:
    model: llama-3-8b
    data: {{source: embedded, feed: packed}}
    recipe: auto
    globalBatchTokens: {tokens}
    sequenceLength: {sequence}
    steps: {steps}
    warmupSteps: {warmup}
    seed: 7
arms:
{arms}
repeats: 1
"""

LINKS = {
    "nvlink": "$machine-1x$gpus-local",
    "sockets": "$machine-${gpus}x1-tcp",
    "tuned": "$machine-${gpus}x1-tcp-tuned",
    "at-100gbit": "$machine-${gpus}x1-tcp-100gbit-tuned",
    "at-25gbit": "$machine-${gpus}x1-tcp-25gbit-tuned",
}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One job: how it was run, and the median of its timed steps."""

    name: str
    step_s: float
    tokens_per_s_per_gpu: float
    mfu: float | None
    note: str


def main() -> int:
    """Run what the command line names; exit 1 where a job failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.gpu_bench", description=__doc__)
    parser.add_argument("figure", choices=["peer", "links"])
    parser.add_argument("--tokens-per-gpu", type=int, default=131_072, help="of one optimizer step")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--links", nargs="+", choices=list(LINKS), default=list(LINKS))
    parser.add_argument("--peer", nargs="*", default=["1:none", "2:selective"], help="batch:checkpointing")
    parser.add_argument("--out", type=Path, default=ROOT / "lab-out" / f"gpu-bench-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    chosen = parser.parse_args()
    gpus = _gpus()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {len(gpus)} x {gpus[0]}, {_versions()}", flush=True)
    if chosen.figure == "links":
        return links(chosen, len(gpus))
    return peer(chosen, len(gpus))


def peer(chosen: argparse.Namespace, gpus: int) -> int:
    """Ours on one pod against torchtitan's best."""
    ours = _ours("peer", {"nvlink": LINKS["nvlink"]}, chosen, gpus)
    _print(ours)
    theirs = [job for text in chosen.peer if (job := _titan(text, chosen, gpus)) is not None]
    if not ours or not theirs:
        return 1
    best = max(theirs, key=lambda job: job.tokens_per_s_per_gpu)
    ratio = ours[0].tokens_per_s_per_gpu / best.tokens_per_s_per_gpu
    print(f"RATIO {ratio:.3f} of {best.name} at {chosen.tokens_per_gpu:,} tokens a GPU and step", flush=True)
    return 0


def links(chosen: argparse.Namespace, gpus: int) -> int:
    """A pod a GPU over each link against one pod."""
    jobs = _ours("links", {name: LINKS[name] for name in chosen.links}, chosen, gpus)
    _print(jobs)
    for job in jobs[1:]:
        print(f"RATIO {job.step_s / jobs[0].step_s:.3f} of {jobs[0].name}'s step: {job.name}", flush=True)
    return 0 if len(jobs) == len(chosen.links) else 1


def _ours(name: str, arms: dict[str, str], chosen: argparse.Namespace, gpus: int) -> list[Measured]:
    """The arms by `topo lab`, from their records."""
    folder: Path = chosen.out / f"{name}-{chosen.tokens_per_gpu}"
    folder.mkdir(parents=True, exist_ok=True)
    text = EXPERIMENT.format(
        name=name,
        tokens=chosen.tokens_per_gpu * gpus,
        sequence=SEQUENCE,
        steps=chosen.steps,
        warmup=chosen.warmup,
        arms="\n".join(f'  - {{name: {arm}, patch: {{topology: "{topology}"}}}}' for arm, topology in arms.items()),
    )
    (folder / "experiment.yaml").write_text(text)
    command = [sys.executable, "-m", "workloads", "lab", str(folder / "experiment.yaml"), "--out", str(folder)]
    subprocess.run(command, cwd=ROOT, check=False)
    found = {job.name: job for record in folder.rglob("record.json") for job in _from_record(record, gpus)}
    return [found[arm] for arm in arms if arm in found]


def _from_record(path: Path, gpus: int) -> list[Measured]:
    record = json.loads(path.read_text())
    summary, config = record["summary"], record["config"]
    if summary["step_s_median"] is None:
        return []
    peak = max((rank["peak_allocated_bytes"] or 0) for rank in record["ranks"]) / 2**30
    sent, expected = summary["sent_bytes_per_pod_and_step"], config["expectations"]["bytes_sent"]
    wire = "" if not sent else f", sent {sent / 1e9:.2f} GB a pod and step"
    if wire and expected:
        wire += f" of {expected['per_pod_and_step'] / 1e9:.2f} expected"
    predicted = config["predicted"]["step_s"]
    note = (
        f"{record['verdict']['outcome']}, {config['recipe']['engine']}, {config['recipe']['micro_batch']} x "
        f"{config['recipe']['accumulation']}, peak {peak:.1f} GiB, predicted {predicted['expected']:.2f} s "
        f"({predicted['low']:.2f} - {predicted['high']:.2f}){wire}; {record['kernels']}"
    )
    tokens = summary["slots_per_s"] / gpus
    return [Measured(name=config["arm"], step_s=summary["step_s_median"], tokens_per_s_per_gpu=tokens,
                     mfu=summary["mfu"], note=note)]  # fmt: skip


def _titan(text: str, chosen: argparse.Namespace, gpus: int) -> Measured | None:
    """torchtitan at a batch and checkpointing; None where it failed (out of memory, not installed)."""
    batch, checkpointing = text.split(":")
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "peer.py"
        program.write_text(PEER)
        arguments = [
            *("--model.name", "llama3_random", "--model.flavor", "8B", "--compile.enable"),
            *("--training.local_batch_size", batch, "--training.seq_len", str(SEQUENCE)),
            *("--training.global_batch_size", str(chosen.tokens_per_gpu * gpus // SEQUENCE)),
            *("--training.steps", str(chosen.steps), "--activation_checkpoint.mode", checkpointing),
            *("--activation_checkpoint.selective_ac_option", "op"),
            *("--metrics.log_freq", "1", "--metrics.disable_color_printing", "--job.dump_folder", scratch),
        ]
        launcher = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={gpus}"]
        done = subprocess.run([*launcher, str(program), *arguments], capture_output=True, text=True, check=False)
    name = f"torchtitan, batch {batch}, checkpointing {checkpointing}"
    rates = {int(step): int(tps.replace(",", "")) for step, tps in _TITAN_STEP.findall(done.stdout + done.stderr)}
    timed = [rate for step, rate in rates.items() if step > chosen.warmup]
    if not timed:
        why = [line for line in (done.stderr + done.stdout).splitlines() if "Error" in line]
        print(f"{name}: failed: {why[-1] if why else done.stderr[-800:]}", flush=True)
        return None
    rate = statistics.median(timed)
    measured = Measured(
        name=name, step_s=chosen.tokens_per_gpu / rate, tokens_per_s_per_gpu=rate, mfu=None, note=f"{timed}"
    )
    _print([measured])
    return measured


def _print(jobs: Sequence[Measured]) -> None:
    for job in jobs:
        mfu = "" if job.mfu is None else f" MFU {job.mfu:.1%}"
        print(f"{job.name:40} {job.step_s:8.3f} s {job.tokens_per_s_per_gpu:9,.0f} tokens/s/GPU{mfu}  {job.note}")
    sys.stdout.flush()


def _gpus() -> list[str]:
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip().splitlines()
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"gpu-bench: nvidia-smi shows no GPU here ({error}); run it on a machine with some") from error


def _versions() -> str:
    program = (
        "import torch;from importlib.metadata import version as v, PackageNotFoundError as E\n"
        "def f(p):\n try: return f'{p} {v(p)}'\n except E: return f'no {p}'\n"
        "print(', '.join([f('torch'), f'NCCL {torch.cuda.nccl.version()}', f('triton'), f('transformers'),"
        "f('flash-attn-4'), f('torchtitan')]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
