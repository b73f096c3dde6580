"""The place of a process, read from what torchrun and the plan's pod set."""

import json
import re
from pathlib import Path

import pytest

from tests.trainer.launching import tiny_config
from trainer.distributed import check_places, prepare_cpu_optimizer, read_place, tell_launcher

TORCHRUN = {
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "GROUP_RANK": "1",
    "TOPOLAB_RECORDS": "s3://bucket/records/",
}


def test_a_place_is_read_from_the_environment() -> None:
    place = read_place(
        TORCHRUN
        | {
            "NODE_NAME": "ip-10-0-1-2",
            "TOPOLAB_CACHE": "/cache",
            "TOPOLAB_LINK_SHAPING": "shaped",
            "TORCHELASTIC_ERROR_FILE": "/logs/x/attempt_0/1/error.json",
            "HF_TOKEN": "hf_secret",
        }
    )
    assert (place.rank, place.ranks, place.local_rank, place.local_ranks, place.pod) == (3, 4, 1, 2, 1)
    assert (place.node, place.records_uri, place.link_shaping) == ("ip-10-0-1-2", "s3://bucket/records", "shaped")
    assert (place.cache, place.checkpoints) == (Path("/cache"), Path("/cache/checkpoints"))
    assert place.log_folder == Path("/logs/x/attempt_0/1")
    assert place.hugging_face_token == "hf_secret"


def test_what_is_absent_has_a_stated_default() -> None:
    place = read_place(TORCHRUN)
    assert place.node == place.hostname
    assert place.link_shaping == "undialled"
    assert (place.log_folder, place.nccl_log, place.hugging_face_token) == (None, None, None)


def test_nccl_s_own_pattern_is_filled_in_as_nccl_does_it() -> None:
    place = read_place(TORCHRUN | {"NCCL_DEBUG_FILE": "/logs/nccl.%h.%p"})
    assert place.nccl_log is not None
    assert place.nccl_log.name.startswith(f"nccl.{place.hostname}.")
    assert place.nccl_log.name.rpartition(".")[2].isdigit()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"RANK": None}, "RANK is not set; start the trainer with `python -m torch.distributed.run`"),
        ({"WORLD_SIZE": "many"}, "WORLD_SIZE is 'many', a number is needed"),
        ({"TOPOLAB_RECORDS": None}, "TOPOLAB_RECORDS is not set"),
        ({"TOPOLAB_LINK_SHAPING": "fast"}, "TOPOLAB_LINK_SHAPING is 'fast', one of shaped, unshaped, undialled"),
    ],
)
def test_a_missing_or_wrong_variable_is_named(changes: dict[str, str | None], sentence: str) -> None:
    variables = {name: value for name, value in (TORCHRUN | changes).items() if value is not None}
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
        read_place(variables)


def test_other_processes_than_the_topology_has_are_refused() -> None:
    place = read_place(TORCHRUN)
    check_places(tiny_config(pods=2, ranks_per_pod=2), place)
    with pytest.raises(ValueError, match=r"started 4 ranks \(WORLD_SIZE\), the config's topology cpu-1x2-local has 2"):
        check_places(tiny_config(), place)
    with pytest.raises(ValueError, match=r"started 2 ranks in this pod \(LOCAL_WORLD_SIZE\), .* has 4"):
        check_places(tiny_config(pods=1, ranks_per_pod=4), place)


def _program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return folder


def test_ninja_is_found_beside_packages_that_no_path_names(tmp_path: Path) -> None:
    beside = _program(tmp_path / "site" / "bin", "ninja")
    compilers = _program(tmp_path / "compilers", "c++")
    variables = {"PATH": str(compilers)}
    place = read_place(TORCHRUN | {"TOPOLAB_CACHE": "/cache"})
    prepare_cpu_optimizer(place, variables, [tmp_path / "empty", tmp_path / "site" / "bin"])
    assert variables["PATH"].split(":")[-2:] == [str(beside), str(compilers)]
    assert variables["TORCH_EXTENSIONS_DIR"] == "/cache/torch_extensions"


@pytest.mark.parametrize(("there", "missing"), [("ninja", "c++"), ("c++", "ninja")])
def test_a_missing_build_tool_is_named_before_deepspeed_needs_it(tmp_path: Path, there: str, missing: str) -> None:
    variables = {"PATH": str(_program(tmp_path, there))}
    with pytest.raises(ValueError, match=rf"builds it with {re.escape(missing)}: "):
        prepare_cpu_optimizer(read_place(TORCHRUN), variables, [])


def test_the_launcher_hears_why_a_rank_fails_in_its_own_format(tmp_path: Path) -> None:
    file = tmp_path / "error.json"
    tell_launcher("steps: must be positive", {"TORCHELASTIC_ERROR_FILE": str(file)})
    told = json.loads(file.read_text())["message"]
    assert told["message"] == told["extraInfo"]["py_callstack"] == "steps: must be positive"
    assert int(told["extraInfo"]["timestamp"]) > 0


@pytest.mark.parametrize("variables", [{}, {"TORCHELASTIC_ERROR_FILE": ""}])
def test_without_a_launcher_nobody_is_told(variables: dict[str, str], tmp_path: Path) -> None:
    tell_launcher("nobody listens", variables)
    assert list(tmp_path.iterdir()) == []
