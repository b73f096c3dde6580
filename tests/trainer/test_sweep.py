"""Which ranks are swept together, and when which two of them meet."""

import json
import multiprocessing
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from trainer.record import Sweep
from trainer.sweep import class_of, exchange, rank_groups, rounds_of_pairs, sweep

pytestmark = pytest.mark.torch


def classes(*spots: tuple[int, str]) -> dict[str, tuple[tuple[int, ...], ...]]:
    return {each.link_class: each.groups for each in rank_groups(spots)}


def test_one_pod_is_one_group() -> None:
    assert classes((0, "a"), (0, "a")) == {"same-pod": ((0, 1),)}


def test_pods_of_several_ranks_are_swept_inside_and_across() -> None:
    spots = [(pod, f"node-{pod}") for pod in (0, 1) for _ in range(2)]
    assert classes(*spots) == {"same-pod": ((0, 1), (2, 3)), "other-node": ((0, 1, 2, 3),)}


def test_pods_of_one_rank_on_two_nodes_are_swept_on_their_node_and_across() -> None:
    spots = [(pod, f"node-{pod // 2}") for pod in range(4)]
    assert classes(*spots) == {"same-node": ((0, 1), (2, 3)), "other-node": ((0, 1, 2, 3),)}


def test_a_lone_pod_or_rank_makes_no_group_of_its_own() -> None:
    assert classes((0, "a")) == {}
    assert classes((0, "a"), (1, "a")) == {"same-node": ((0, 1),)}
    assert classes((0, "a"), (1, "a"), (2, "b")) == {"other-node": ((0, 1, 2),)}


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 8])
def test_every_pair_meets_once_and_nobody_twice_in_a_round(ranks: int) -> None:
    rounds = list(rounds_of_pairs(ranks))
    met = [pair for pairs in rounds for pair in pairs]
    assert sorted(met) == [(a, b) for a in range(ranks) for b in range(a + 1, ranks)]
    for pairs in rounds:
        busy = [rank for pair in pairs for rank in pair]
        assert len(busy) == len(set(busy))


def test_two_ranks_are_joined_by_pod_then_node() -> None:
    assert [class_of((0, "a"), other) for other in ((0, "a"), (1, "a"), (1, "b"))] == [
        "same-pod",
        "same-node",
        "other-node",
    ]


SPOTS = [(pod, f"node-{pod}") for pod in (0, 1) for _ in range(2)]


def _swept(folder: Path, rank: int) -> None:
    """One of four ranks on two pods of two nodes."""
    dist.init_process_group("gloo", store=dist.FileStore(str(folder / "store"), 4), rank=rank, world_size=4)
    cpu = torch.device("cpu")
    found = [sweep(groups, cpu, 1.0) for groups in rank_groups(SPOTS)]
    pairs = exchange(SPOTS, cpu, 0.5, 1e8)
    told = {"sweeps": [each.model_dump(mode="json") for each in found], "pairs": [p.model_dump() for p in pairs]}
    (folder / f"rank-{rank}.json").write_text(json.dumps(told))
    dist.barrier()


def test_four_ranks_on_two_nodes_agree_on_what_they_swept(tmp_path: Path) -> None:
    fresh = multiprocessing.get_context("spawn")
    ranks = [fresh.Process(target=_swept, args=(tmp_path, rank)) for rank in range(4)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(240)
    texts = {(tmp_path / f"rank-{rank}.json").read_text() for rank in range(4)}
    assert len(texts) == 1, "all ranks tell the same"
    told = json.loads(texts.pop())
    inside, across = (Sweep.model_validate_json(json.dumps(each)) for each in told["sweeps"])
    assert (inside.link_class, inside.ranks, inside.groups) == ("same-pod", 2, 2)
    assert (across.link_class, across.ranks, across.groups) == ("other-node", 4, 1)
    assert {(pair["one"], pair["other"]) for pair in told["pairs"]} == {
        (a, b) for a in range(4) for b in range(a + 1, 4)
    }
    assert {pair["link_class"] for pair in told["pairs"]} == {"same-pod", "other-node"}
