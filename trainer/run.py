"""One run from its config to its published record."""

import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import torch
import torch.distributed as dist
from transformers import PreTrainedModel, TrainingArguments, set_seed

from trainer import ending, publish
from trainer.checkpoint import (
    StopWish,
    checkpoint_folder,
    checkpoints_of,
    complete_steps,
    newest_common,
    refuse_finished,
    refuse_leftovers,
    remove_after,
)
from trainer.config import TrainConfig
from trainer.counters import connections
from trainer.cpu_backend import start_gloo
from trainer.data import Data, load_data
from trainer.direct import DirectTrainer
from trainer.distributed import Place, check_places, leave, prepare_cpu_optimizer, read_place, tell_launcher
from trainer.ending import Ending
from trainer.errors import first_line
from trainer.facts import Stopwatch, gather, gather_facts, own_facts, transports_seen
from trainer.feed import MicroBatches
from trainer.kernels import choose_kernels
from trainer.loop import TIMEOUT_S, LineTrainer, Loop, training_arguments
from trainer.model import make_model
from trainer.probe import probe_link
from trainer.probe_ranks import probe_ranks
from trainer.record import Hang
from trainer.steps import StepWriter
from trainer.verdict import Start, judge_links
from trainer.watchdog import Watchdog


@dataclass(frozen=True)
class _Ready:
    """What is checked and in place before the model is made."""

    config: TrainConfig
    place: Place
    watch: Stopwatch
    started: datetime
    wish: StopWish
    device: torch.device
    arguments: TrainingArguments | None
    """Of the Hugging Face Trainer; None where the engine isn't DeepSpeed's."""
    run_id: str
    data: Data | None
    """None: nothing is trained."""
    start: Start

    @property
    def folder(self) -> Path:
        return self.place.cache / "records" / self.run_id


def run(config: TrainConfig, import_s: float) -> int:
    """Train by the config and publish the record; returns the exit code.

    Raises ValueError, before the model is made, for what the user got wrong. What fails later is published
    as far as it came.
    """
    ready = _prepare(config, import_s)
    writer = StepWriter(publish.steps_file(ready.folder, ready.place.rank))
    loop = Loop(config, ready.place.rank, ready.wish, writer, lambda: _links_fit(ready))
    end = Ending(
        config=config,
        place=ready.place,
        folder=ready.folder,
        started=ready.started,
        data=None if ready.data is None else ready.data.facts,
        start=ready.start,
        watch=ready.watch,
        loop=loop,
    )
    loop.watchdog = Watchdog(ready.place.rank, config.ranks, lambda hang, speaker: _end_hung(end, hang, speaker))
    try:
        if ready.data is None:
            loop.connections = connections()
        else:
            loop.watchdog.start()
            _train(ready, ready.data, loop)
            loop.watchdog.stop()
        code = ending.conclude(end)
    except Exception as error:
        # Printed before the rank's log is collected, so that the record says what happened.
        traceback.print_exc()
        tell_launcher(f"{type(error).__name__}: {first_line(error)}")
        return ending.salvage(end)
    dist.barrier()
    if config.backend == "nccl":
        # gloo's group is left to the process's end (see trainer.__main__): its threads may not survive being told.
        dist.destroy_process_group()
    return code


def _end_hung(end: Ending, hang: Hang, speaker: int) -> NoReturn:
    """On the watching thread: the main one waits for ever, and would not hear."""
    print(hang.sentence, file=sys.stderr, flush=True)
    tell_launcher(hang.sentence)
    leave(ending.salvage(end, hang, speaker))


def _prepare(config: TrainConfig, import_s: float) -> _Ready:
    started, watch, wish = datetime.now(UTC), Stopwatch(import_s), StopWish()
    place = read_place()
    check_places(config, place)
    wish.listen()
    if config.recipe.zero.offload_optimizer:
        prepare_cpu_optimizer(place)
    if config.recipe.omp_threads is not None:
        torch.set_num_threads(config.recipe.omp_threads)
    checkpoints = checkpoints_of(config, place.checkpoints)
    with watch.part("rendezvous_s"):
        device, arguments = _join(config, place, checkpoints)
        run_id = _shared_run_id(config, place, started)
    with watch.part("data_s"):
        data = _shared_data(config, place) if config.steps else None
    after = _resume_point(config, checkpoints, place)
    with watch.part("probe_s"):
        link_probe = probe_link(config, place, device)
        probe = probe_ranks(config, place, device)
    start = Start(resumed_after_step=after, link_probe=link_probe, probe=probe)
    return _Ready(config, place, watch, started, wish, device, arguments, run_id, data, start)


def _join(config: TrainConfig, place: Place, checkpoints: Path) -> tuple[torch.device, TrainingArguments | None]:
    """Start the process group: by TrainingArguments on GPUs, by hand on the CPU and for our own engine."""
    gpu = torch.cuda.is_available()
    if gpu != (config.backend == "nccl"):
        raise ValueError(
            f"config.backend: {config.backend} on a machine {'with' if gpu else 'without'} a GPU; "
            "nccl needs one, gloo is for machines without"
        )
    if config.recipe.engine == "direct":
        return _join_directly(config, place), None
    arguments = training_arguments(config, checkpoints)
    if not gpu:
        start_gloo(TIMEOUT_S)
    assert arguments.world_size == config.ranks, f"world {arguments.world_size}, planned {config.ranks}"
    assert dist.get_backend() == config.backend, f"{dist.get_backend()}, planned {config.backend}"
    return arguments.device, arguments


def _join_directly(config: TrainConfig, place: Place) -> torch.device:
    device = torch.device("cuda", place.local_rank) if config.backend == "nccl" else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    bound = device if device.type == "cuda" else None
    dist.init_process_group(config.backend, timeout=timedelta(seconds=TIMEOUT_S), device_id=bound)
    return device


def _shared_run_id(config: TrainConfig, place: Place, started: datetime) -> str:
    """Rank 0's name for the run, refused where a record of that name exists."""
    proposed = f"{config.job_name}-{started:%Y%m%dT%H%M%SZ}"
    if place.rank == 0:
        publish.refuse_existing(place.records_uri, proposed)
    return gather(proposed)[0]


def _shared_data(config: TrainConfig, place: Place) -> Data:
    """One rank of a pod fills the cache, then the others read it."""
    if place.local_rank == 0:
        data = load_data(config, place.cache, place.hugging_face_token)
        dist.barrier()
        return data
    dist.barrier()
    return load_data(config, place.cache, place.hugging_face_token)


def _resume_point(config: TrainConfig, folder: Path, place: Place) -> int:
    """The step of the newest checkpoint that all ranks finished; 0 begins at step 1.

    Collective where the config resumes. What lies after that step goes, once for each pod.
    """
    if not config.resume:
        if config.checkpoint_every_steps is not None:
            refuse_leftovers(folder)
        return 0
    own = complete_steps(config, folder, place.rank)
    everyone = [[int(step) for step in text.split()] for text in gather(" ".join(map(str, own)))]
    step = newest_common(everyone)
    refuse_finished(config, folder, step)
    if place.local_rank == 0:
        remove_after(folder, step or 0)
    dist.barrier()
    if place.rank == 0:
        found = "no complete checkpoint" if step is None else f"from step {step}"
        print(f"start {place.restarts + 1} of the job, resume: {found} in {folder}", flush=True)
    return step or 0


def _train(ready: _Ready, data: Data, loop: Loop) -> None:
    began = time.perf_counter()
    set_seed(ready.config.seed)
    model = make_model(ready.config, ready.device)
    feed = MicroBatches(ready.config, data.samples, ready.place.rank)
    after = ready.start.resumed_after_step
    folder = checkpoints_of(ready.config, ready.place.checkpoints)
    resumed = checkpoint_folder(folder, after) if after else None
    if ready.arguments is None:
        _train_directly(ready, model, feed, loop, resumed)
    else:
        trainer = LineTrainer(ready.config, model, ready.arguments, feed, loop)
        trainer.train(resume_from_checkpoint=None if resumed is None else str(resumed))
    loop.writer.close()
    ready.watch.add("model_s", loop.began - began)


def _train_directly(
    ready: _Ready, model: PreTrainedModel, feed: MicroBatches, loop: Loop, resumed: Path | None
) -> None:
    kernels = choose_kernels(ready.device)
    loop.kernels = kernels.chosen
    checkpoints = checkpoints_of(ready.config, ready.place.checkpoints)
    DirectTrainer(ready.config, model, kernels, feed, loop, checkpoints).train(resumed)


def _links_fit(ready: _Ready) -> bool:
    """Whether the run may go on: judged by rank 0 from all ranks' evidence, once all links are in use.

    Links that couldn't be shaped are known to be wrong and judged as such at the end.
    """
    config, place = ready.config, ready.place
    if config.on_wrong_link == "record" or place.link_shaping == "unshaped":
        return True
    ranks = gather_facts(own_facts(place, ready.watch.clock(), connections(), ()))
    logs = dict(enumerate(gather(publish.nccl_text(place))))
    verdict = judge_links(config, ranks, transports_seen(config, ranks, logs))
    wrong: Sequence[str] = verdict.reasons if verdict.outcome == "INVALID" else ()
    if wrong and place.rank == 0:
        sentence = f"stopped, because the link is wrong: {'; '.join(wrong)}"
        print(sentence, file=sys.stderr)
        tell_launcher(sentence)
    return not wrong
