"""The README's commands run, and its figures are those of the catalogue."""

import re
import shlex
from pathlib import Path

import pytest

from tests.record_factory import one_pod, two_pods, write_run
from tests.source import ROOT
from workloads.catalogue.instances import INSTANCE_TYPES
from workloads.catalogue.prices import ON_DEMAND, usd_per_hour
from workloads.catalogue.topologies import NAMED_TOPOLOGIES, parse_topology
from workloads.cli.main import main

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^ *```sh\n(.*?)^ *```", README, flags=re.MULTILINE | re.DOTALL)
COMMANDS = [line.split("  #")[0].strip() for block in BLOCKS for line in block.splitlines()]
TOPO = [command for command in COMMANDS if command.startswith("./topo ")]
WITH_A_STACK = {
    "./topo preflight dev",
    "./topo preflight",
    "./topo watch dev",
    "./topo why-pending dev",
    "./topo collect dev",
    "./topo report records --out dev.html",
    "./topo verify-destroyed dev",
}
"""They ask a stack that somebody made, or its account."""


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the commands name: stack files, fixtures, and the records of one lab."""
    for name in ("Pulumi.dev.yaml", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    folder = tmp_path / "lab-out" / "20261121T090000Z" / "default-cpu"
    write_run(one_pod(), folder, "run-a")
    write_run(two_pods(), folder, "run-b")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", [c for c in TOPO if c not in WITH_A_STACK])
def test_every_command_that_needs_no_account_runs_as_it_stands(command, clone, capsys):
    words = [str(p) for word in shlex.split(command)[1:] for p in sorted(clone.glob(word)) or [word]]
    assert main(words) == 0, capsys.readouterr().err
    assert capsys.readouterr().out


def test_the_readme_shows_every_verb_but_the_one_that_make_calls():
    shown = {command.split()[1] for command in TOPO}
    assert shown == {
        "catalogue", "predict", "render", "nccl", "verify", "report", "why-pending", "collect", "verify-destroyed",
        "preflight",
        "watch",
    }  # fmt: skip


def test_every_make_target_that_is_named_is_there():
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = [
        c.removeprefix("make ") for c in [*COMMANDS, *re.findall(r"`(make [^`]+)`", README)] if c.startswith("make ")
    ]
    words = {word for line in named for word in line.split() if "=" not in word}
    assert words
    assert words <= targets


def test_the_price_of_an_arm_is_the_catalogues():
    rows = re.findall(r"^\| (`.*?) \| (\d+) \| ([\d.]+) \|$", README, flags=re.MULTILINE)
    assert len(rows) >= 7
    for cell, nodes, usd in rows:
        for name in re.findall(r"`([a-z0-9]+-\d+x\d+-[a-z0-9-]+)`", cell):
            topology = parse_topology(name)
            price = usd_per_hour(topology.machine.name, ON_DEMAND.region)
            assert price is not None
            assert (int(nodes), float(usd)) == (topology.nodes, round(price * topology.nodes, 2)), name


def test_the_price_list_is_dated_as_the_catalogue_is():
    assert f"{ON_DEMAND.region}, read on {ON_DEMAND.read_on}" in " ".join(README.split())


def test_quotas_are_the_vcpus_of_the_arms_that_need_most():
    cells = {code: (cheap, every) for code, cheap, every in re.findall(r"\| (L-\w+) \| (\d+)[^|]*\| (\d+)", README)}
    needs: dict[str, list[int]] = {}
    for row in NAMED_TOPOLOGIES:
        topology = parse_topology(row.name)
        kind = next((k for k in INSTANCE_TYPES if k.name == topology.machine.name), None)
        if kind:
            needs.setdefault(kind.quota_code, []).append(kind.vcpus * topology.nodes)
    for code, vcpus in needs.items():
        assert int(cells[code][1]) == max(vcpus)
    assert int(cells["L-DB2E81BA"][0]) == min(needs["L-DB2E81BA"])


def test_every_file_that_is_named_is_there():
    named = re.findall(r"`((?:docs|tools|tests|\.ci)/[\w./-]*)`", README)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []
