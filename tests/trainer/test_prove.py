"""Jobs that aren't ours, wrapped for real: torchrun, gloo on loopback."""

import contextlib
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plan_factory import planned
from tests.trainer.launching import Ended, environment_of, free_port, tiny_config
from trainer.config import LinkExpectation, TrainConfig
from workloads.comparison.records import read_runs
from workloads.comparison.report import build_report, html

pytestmark = pytest.mark.torch

FOREIGN = Path(__file__).with_name("foreign")
TWO_PODS = (LinkExpectation(link_class="same-node", pairs=1, expected=("TCP", "loopback"), forbidden=()),)


def prove(config: TrainConfig, folder: Path, *job: str, ranks: int = 2) -> Ended:
    """One `trainer.prove` for each pod, each around a torchrun."""
    folder.mkdir(parents=True, exist_ok=True)
    file, port = folder / "config.json", str(free_pair())
    file.write_text(config.model_dump_json())
    pods = []
    for pod in range(config.pods):
        place = {"PET_NODE_RANK": str(pod), "PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": port}
        command = [
            *(sys.executable, "-m", "torch.distributed.run", f"--nnodes={config.pods}", f"--nproc-per-node={ranks}"),
            *(f"--node-rank={pod}", "--master-addr=127.0.0.1", f"--master-port={port}", "--tee=3"),
            *job,
        ]
        pods.append(
            subprocess.Popen(
                [sys.executable, "-m", "trainer.prove", "--config", str(file), "--", *command],
                env=environment_of(folder / "records", folder / f"cache-{pod}", place),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    outputs = [pod.communicate(timeout=240)[0] for pod in pods]
    return Ended(pods[0].returncode, "\n".join(outputs), folder / "records")


def free_pair() -> int:
    """A port whose next one is free, too: the gang's store stands there."""
    while True:
        port = free_port()
        with socket.socket() as beside, contextlib.suppress(OSError):
            beside.bind(("127.0.0.1", port + 1))
            return port


def test_a_plain_ddp_script_that_prints_its_steps_gets_the_record_of_a_run(tmp_path: Path) -> None:
    ended = prove(tiny_config(), tmp_path, str(FOREIGN / "plain_ddp.py"), "600")
    assert ended.exit_code == 0, ended.output
    record = ended.record
    assert (record.status, record.verdict.outcome, record.verdict.reasons) == ("complete", "VALID", ())
    assert record.config.command is not None
    assert record.config.command[-1] == "600"
    assert (record.config.steps, record.config.expectations.bytes_sent) == (600, None)
    assert (record.data, record.model_parameters, record.summary.mfu) == (None, None, None)
    assert [line.step for line in ended.steps()] == list(range(1, 601))
    assert ended.steps(1) == []
    assert record.summary.timed_steps == 598
    assert {t.transport for t in record.transports} == {"loopback"}
    assert [(f.rank, f.local_rank, f.omp_threads) for f in record.ranks] == [(0, 0, 1), (1, 1, 1)]
    assert '"step": 600' in (ended.folder / "logs" / "rank-00000.log").read_text()


def test_its_report_names_the_job_and_can_be_verified(tmp_path: Path) -> None:
    ended = prove(planned("cpu-1x2-local").config, tmp_path, str(FOREIGN / "plain_ddp.py"), "400")
    (run,) = read_runs([str(ended.folder)])
    page = html(build_report([run]))
    assert "A job that isn&#39;t topolab&#39;s, under trainer.prove: " in page
    assert "plain_ddp.py 400" in page
    verified = subprocess.run(
        [sys.executable, "-m", "workloads", "verify", str(ended.folder)], capture_output=True, text=True, check=False
    )
    assert ": VALID, as recorded" in verified.stdout, verified.stdout


def test_two_pods_of_a_hugging_face_script_make_one_record_by_its_two_lines(tmp_path: Path) -> None:
    expectations = tiny_config().expectations.model_copy(update={"links": TWO_PODS})
    config = tiny_config(pods=2, ranks_per_pod=1, topology="cpu-2x1-tcp", expectations=expectations)
    ended = prove(config, tmp_path, str(FOREIGN / "hf_trainer.py"), "60", str(tmp_path / "out"), ranks=1)
    assert ended.exit_code == 0, ended.output
    record = ended.record
    assert [(f.rank, f.pod) for f in record.ranks] == [(0, 0), (1, 1)]
    for rank in (0, 1):
        assert [line.step for line in ended.steps(rank)] == list(range(2, 61))
        assert {line.real_tokens for line in ended.steps(rank)} == {128}
    assert record.summary.real_tokens_per_s is not None
    assert {t.link_class for t in record.transports} == {"same-node"}
    # Both pods stand on loopback, and no pod has an interface of its own whose counters would prove anything.
    assert record.verdict.outcome != "INVALID", record.verdict


def test_a_job_that_fails_leaves_a_record_and_its_own_exit_code(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit('no such dataset')\n")
    ended = prove(tiny_config(), tmp_path, str(broken))
    assert ended.exit_code == 1
    assert "no such dataset" in ended.output
    assert (ended.record.status, ended.record.verdict.outcome) == ("failed", "INVALID")


def test_a_loss_that_is_no_number_makes_the_job_invalid_and_stops_the_line(tmp_path: Path) -> None:
    ended = prove(tiny_config(), tmp_path, str(FOREIGN / "plain_ddp.py"), "10", "nan")
    assert ended.exit_code == 3
    assert "INVALID: step 1: the loss is no number" in ended.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--", "no-such-program"], "no-such-program: can't be started: No such file or directory"),
        (["--config", "absent.json", "--", "true"], "absent.json: can't be read"),
    ],
)
def test_what_the_user_got_wrong_is_one_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(tiny_config().model_dump_json())
    ended = subprocess.run(
        [sys.executable, "-m", "trainer.prove", "--config", str(file), *arguments],
        env=environment_of(tmp_path / "records", tmp_path / "cache", {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith(sentence), ended.stderr
