"""What a first `pulumi up` waits for, one after the other."""

from itertools import pairwise

import pytest

from tests.critical_path import TAKES_MIN, longest, main, waits_for
from tests.pulumi_engine import registered


@pytest.mark.parametrize("stack", ["dev", "scratch"])
def test_the_chain_ends_with_the_job_and_each_link_waits_for_the_one_before(stack):
    graph = registered(stack)
    links = longest(graph).links
    assert links[-1].kind == "TrainJob"
    assert all(one.urn in waits_for(graph, later) for one, later in pairwise(links))


def test_a_file_system_is_made_beside_the_cluster_and_costs_no_time():
    with_storage, without = longest(registered("scratch")), longest(registered("dev"))
    assert "LustreFileSystem" not in {one.kind for one in with_storage.links}
    assert with_storage.high_min - without.high_min < 1


def test_plugins_trainer_and_storage_do_not_wait_for_each_other():
    # Of the charts: two of Karpenter's, and one of those that stand on the pool.
    assert [one.kind for one in longest(registered("dev")).links].count("Release") == 3


def test_what_takes_minutes_is_printed_a_line_each(capsys):
    main("dev")
    lines = capsys.readouterr().out.splitlines()
    slow = [one for one in longest(registered("dev")).links if one.type in TAKES_MIN]
    assert len(lines) == 2 + len(slow)
    assert "minutes to an accepted TrainJob" in lines[1]
