"""`topo why-pending`."""

import json

import pytest

from tests.workloads.cli.test_collect import fake_pulumi
from tests.workloads.operations.pending.seen import JOB, seen
from workloads.cli import why_pending

STACK = """\
config:
  aws:region: us-east-1
  topolab:topology: g6e12xl-4x4-efa1
  topolab:platform: {zone: us-east-1b}
  topolab:run: {model: llama-3-8b, recipe: auto, steps: 30, attempt: 7}
"""


@pytest.fixture
def observed(monkeypatch):
    """What the cluster is found to hold; a test may put something else, and reads what was asked."""
    found: dict[str, object] = {"asked": [], "seen": seen("taint")}

    def observe(_, **asked):
        found["asked"] = asked
        return found["seen"]

    monkeypatch.setattr(why_pending, "connect", lambda *_: None)
    monkeypatch.setattr(why_pending, "observe", observe)
    return found


@pytest.fixture
def pulumi(tmp_path, monkeypatch):
    """A Pulumi whose stack `dev` has these outputs."""
    outputs = json.dumps({"namespace": "topolab", "trainJob": JOB})
    fake_pulumi(tmp_path / "bin", f"""[ "$*" = "stack output --json --stack dev" ] && echo '{outputs}'""")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.mark.usefixtures("pulumi")
def test_one_sentence_and_one_remedy(topo, observed):
    called = topo("why-pending", "dev")
    assert called.out == (
        f"{JOB}: 1 Pending\n\n"
        f"{JOB}-node-0-0-6e023-taint: the pod doesn't tolerate the taint nvidia.com/gpu=present:NoSchedule of NodePool "
        "gpu-g6e12xl-taint.\n"
        "  remedy: run `pulumi up`: the rendered runtime tolerates it, so pod or pool were changed by hand\n"
    )
    assert called.code == 0
    assert observed["asked"] == {"namespace": "topolab", "job": JOB}


@pytest.mark.usefixtures("pulumi")
def test_json_says_the_same_to_programs(topo, observed):
    observed["seen"] = seen("sg")
    printed = json.loads(topo("why-pending", "dev", "--json").out)
    (finding,) = printed.pop("findings")
    assert printed == {"trainJob": JOB, "pods": {"Pending": 1}, "explained": True}
    assert set(finding) == {"sentence", "remedy", "pods"}
    assert finding["pods"] == [f"{JOB}-node-0-0-6e023-sg"]


@pytest.mark.usefixtures("pulumi")
def test_pods_that_run_are_counted_and_nothing_else_is_said(topo, observed):
    observed["seen"] = seen("oktwo")
    called = topo("why-pending", "dev")
    assert (called.out, called.code) == (f"{JOB}: 1 Running\n", 0)


@pytest.mark.usefixtures("pulumi")
def test_a_pod_without_a_reason_is_a_no(topo, observed):
    def speechless(objects):
        objects["events"] = [one for one in objects["events"] if one.get("reason") != "NoCompatibleInstanceTypes"]

    observed["seen"] = seen("zone", speechless)
    called = topo("why-pending", "dev")
    assert "6e023-zone: the cluster names no reason.\n" in called.out
    assert called.code == 1


@pytest.mark.usefixtures("observed")
def test_a_stack_file_names_its_job_itself(topo, observed, tmp_path):
    (tmp_path / "Pulumi.mine.yaml").write_text(STACK)
    assert topo("why-pending", str(tmp_path / "Pulumi.mine.yaml")).code == 0
    assert observed["asked"] == {"namespace": "topolab", "job": "g6e12xl-4x4-efa1-7"}


@pytest.mark.usefixtures("observed")
def test_a_stack_that_was_never_up_has_no_job(topo, tmp_path, monkeypatch):
    fake_pulumi(tmp_path / "bin", "echo '{}'")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    called = topo("why-pending", "dev")
    assert called.code == 2
    assert called.err == (
        "topo: dev: the stack has no TrainJob yet; run `pulumi up`, or give its file Pulumi.dev.yaml\n"
    )


@pytest.mark.usefixtures("observed")
def test_without_pulumi_a_name_cannot_be_looked_up(topo, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    called = topo("why-pending", "dev")
    assert called.code == 2
    assert "pulumi command line isn't installed" in called.err


def test_a_kubeconfig_that_is_not_there_is_told_before_pulumi_is_asked(topo, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    called = topo("why-pending", "dev", "--kubeconfig", str(tmp_path / "none"))
    assert called.code == 2
    assert called.err == (
        f"topo: --kubeconfig {tmp_path / 'none'}: there is no such file; write it with "
        "`pulumi stack output kubeconfig --show-secrets > kubeconfig`\n"
    )
