"""`topo preflight`."""

import json
from typing import Any

import pytest

from tests.workloads.cli.test_collect import fake_pulumi
from workloads.cli import preflight
from workloads.operations.preflight.offers import Market
from workloads.operations.preflight.rows import green, grey, red

STACK = """\
config:
  aws:region: us-east-1
  aws:profile: lab
  topolab:topology: g6e8xl-2x1-efa1
  topolab:platform: {zone: us-east-1b}
  topolab:run: {model: llama-3.2-1b, recipe: auto, steps: 30}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "Pulumi.yaml").write_text("name: topolab\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def account(monkeypatch):
    """What the account is found to be; a test may put other rows, and reads what was asked."""
    found: dict[str, Any] = {
        "rows": [green("region", "us-east-1 is enabled"), grey("price", "may not be read", "allow it")]
    }

    def asked(subject, aws, _, token, *, limit_s):
        found["asked"] = (subject.owner.stack, subject.zone, aws.region, aws.profile, token, limit_s)
        return found["rows"]

    class Clients:
        def __init__(self, *, region, profile, config):
            self.region, self.profile, self.config = region, profile, config

    monkeypatch.setattr(preflight, "preflight", asked)
    monkeypatch.setattr(preflight, "Aws", Clients)
    return found


def test_rows_are_a_table_then_the_remedies_then_the_sum(topo, account):
    called = topo("preflight", "dev")
    assert called.code == 0
    assert called.out == (
        "stack dev: g6e8xl-2x1-efa1 in us-east-1b\n"
        "       check   found\n"
        "green  region  us-east-1 is enabled\n"
        "grey   price   may not be read\n"
        "\n"
        "price: allow it\n"
        "1 green, 0 red, 1 grey: `pulumi up` may go on\n"
    )
    assert account["asked"] == ("dev", "us-east-1b", "us-east-1", "lab", None, 18.0)


def test_one_red_row_is_exit_code_one_and_its_remedy_comes_first(topo, account):
    account["rows"].append(red("zone", "EC2 offers none", "set platform.zone"))
    called = topo("preflight", "Pulumi.dev.yaml", "--profile", "other", "--limit", "5")
    assert called.code == 1
    assert called.out.splitlines()[-3:] == [
        "zone: set platform.zone",
        "price: allow it",
        "1 green, 1 red, 1 grey: mend what is red first",
    ]
    assert account["asked"][3:] == ("other", None, 5.0)


def test_for_programs_it_is_json(topo, account):
    called = topo("preflight", "dev", "--json")
    document = json.loads(called.out)
    assert (document["stack"], document["topology"], document["ready"]) == ("dev", "g6e8xl-2x1-efa1", True)
    assert document["checks"][1] == {
        "check": "price",
        "colour": "grey",
        "sentence": "may not be read",
        "remedy": "allow it",
    }
    assert account["asked"]


GATED = STACK.replace("steps: 30", "steps: 30, data: {source: 'hf:a/b'}") + "  topolab:hfToken: {secure: v1:x}\n"


@pytest.mark.parametrize(("script", "token"), [("echo hf_opened", "hf_opened"), ("exit 1", None)])
def test_the_stacks_token_is_opened_by_pulumi_and_never_shown(topo, account, folder, monkeypatch, script, token):
    (folder / "Pulumi.dev.yaml").write_text(GATED)
    fake_pulumi(folder / "bin", f'[ "$*" = "config get topolab:hfToken --stack dev" ] && {script}')
    monkeypatch.setenv("PATH", str(folder / "bin"))
    called = topo("preflight", "dev")
    assert account["asked"][4] == token
    assert "hf_opened" not in called.out + called.err


def test_without_pulumi_the_token_isnt_known(topo, account, folder, monkeypatch):
    (folder / "Pulumi.dev.yaml").write_text(GATED)
    monkeypatch.setenv("PATH", "")
    assert topo("preflight", "dev").code == 0
    assert account["asked"][4] is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STACK.replace("g6e8xl-2x1-efa1", "cpu-2x1-tcp").replace("llama-3.2-1b", "tiny"), "runs on a local machine"),
        (STACK.replace("  aws:region: us-east-1\n", ""), "aws:region is missing"),
        (STACK.replace("us-east-1b", "mars"), "not an availability zone"),
    ],
)
def test_a_stack_that_cant_be_checked_is_one_sentence(topo, folder, text, said):
    (folder / "Pulumi.dev.yaml").write_text(text)
    called = topo("preflight", "dev")
    assert (called.code, called.out) == (2, "")
    assert said in called.err


def test_a_stack_names_its_own_region(topo):
    called = topo("preflight", "dev", "--region", "eu-west-1")
    assert called.code == 2
    assert "leave the option out" in called.err


@pytest.fixture
def market(monkeypatch, account):
    found = Market(
        region="us-east-1", free_vcpus={"L-DB2E81BA": 64.0, "L-3819A6DF": 0.0}, zones={"g6e.8xlarge": {"us-east-1b"}}
    )
    unanswered = [
        grey(f"quota L-{code}", "these credentials may not call GetServiceQuota", "allow it")
        for code in ("417A185B", "7212CCBC")
    ]
    monkeypatch.setattr(preflight, "survey", lambda aws, **_: (account.update(aws=aws) or found, unanswered))
    return found


def test_without_a_stack_it_says_what_runs_today_where_and_at_what_price(topo, market, account):
    called = topo("preflight")
    lines = called.out.splitlines()
    assert called.code == 0
    assert lines[0] == "us-east-1, on demand"
    assert lines[2].split() == ["g6e8xl-2x1-efa1", "2", "x", "g6e.8xlarge", "yes", "64", "64", "0", "9.06", "b"]
    assert any("no: quota L-DB2E81BA: 64 of 512 vCPUs free" in line for line in lines)
    assert any(line.startswith("p548xl-1x8-efa32") and "unknown" in line for line in lines)
    cause = "these credentials may not call GetServiceQuota; allow it"
    assert f"quota L-417A185B, quota L-7212CCBC: {cause}" in lines
    assert account["aws"].region == market.region


def test_without_a_stack_and_without_quota_the_exit_code_is_one(topo, market):
    market.free_vcpus.clear()
    called = topo("preflight", "--region", "us-east-1", "--json")
    assert called.code == 1
    document = json.loads(called.out)
    assert document["offers"][0]["runs"] is None
    assert document["unanswered"][0]["colour"] == "grey"
