"""`topo verify-destroyed`."""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.ec2.responses import EC2Response

from tests.source import ROOT
from tests.workloads.operations.leftovers import scene
from tests.workloads.operations.leftovers.scene import ACCOUNT, CNI, KARPENTER, KEPT, OWN, OWNER
from workloads.cli import verify_destroyed
from workloads.operations.leftovers.find import find
from workloads.operations.leftovers.inventory import Inventory
from workloads.operations.leftovers.patience import Patience

_NAMED = f'config:\n  aws:region: us-east-1\n  topolab:platform: {{allowedAccounts: ["{ACCOUNT}"]}}\n'
_NAMELESS = "config:\n  aws:region: us-east-1\n"


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    monkeypatch.setattr(EC2Response, "describe_placement_groups", scene.placement_groups([]), raising=False)
    monkeypatch.setattr(EC2Response, "describe_capacity_reservations", scene.capacity_reservations([]), raising=False)
    # One set of clients for all tests, of the region that the scene is in.
    monkeypatch.setattr(verify_destroyed, "Aws", lambda **_: scene.aws())
    # Nobody waits: fake instances end at once.
    monkeypatch.setattr(verify_destroyed, "Patience", functools.partial(Patience, sleep=lambda _: None))
    with mock_aws():
        yield


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: topolab\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(_NAMED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def node() -> str:
    return scene.instance(scene.subnet(scene.vpc({}), {}), {**KARPENTER, **OWN})


def test_an_empty_account_is_said_to_be_empty_with_its_number(topo):
    called = topo("verify-destroyed", "dev")
    assert called.code == 0
    assert called.out == f"account {ACCOUNT}, us-east-1: nothing is left of stack dev\n"
    assert called.err.splitlines() == [
        "asking AWS in us-east-1 whose credentials these are",
        f"account {ACCOUNT}, us-east-1: asking for all that bears the name of stack dev",
    ]


def test_what_is_left_is_a_table_with_price_and_command_and_the_exit_code_is_one(topo, node):
    called = topo("verify-destroyed", "dev")
    assert called.code == 1
    lines = called.out.splitlines()
    assert lines[0] == f"account {ACCOUNT}, us-east-1: 1 left of stack dev"
    assert lines[1].split() == ["left", "id", "state", "USD/h", "removed", "by"]
    command = f"aws ec2 terminate-instances --instance-ids {node} --region us-east-1"
    assert [cell.strip() for cell in lines[2].split("  ")] == [
        "instance",
        node,
        "g6e.8xlarge, running",
        "4.53",
        command,
    ]
    assert lines[-1] == "`./topo verify-destroyed dev --sweep` removes what Karpenter and the CNI left"


def test_for_programs_it_is_json(topo, node):
    called = topo("verify-destroyed", "dev", "--json")
    document = json.loads(called.out)
    assert called.code == 1
    assert document["destroyed"] is False
    assert (document["account"], document["region"], document["cluster"]) == (ACCOUNT, "us-east-1", "topolab-dev")
    assert document["accountIsNamed"] is True
    assert document["left"] == [
        {
            "kind": "instance",
            "id": node,
            "state": "g6e.8xlarge, running",
            "usdPerHour": 4.52856,
            "sweepable": True,
            "remove": f"aws ec2 terminate-instances --instance-ids {node} --region us-east-1",
        }
    ]
    assert (document["kept"], document["unproven"]) == ([], [])


def test_what_is_kept_by_choice_is_listed_and_nothing_else_is_left(topo):
    scene.bucket("topolab-dev-7f3a", {**OWN, **KEPT})
    called = topo("verify-destroyed", "dev")
    assert called.code == 0
    assert "bucket          topolab-dev-7f3a  run records" in called.out
    assert called.out.endswith("nothing is left of stack dev but what is kept by choice\n")
    kept = json.loads(topo("verify-destroyed", "dev", "--json").out)["kept"]
    assert [(one["kind"], one["reason"]) for one in kept] == [("bucket", "run records")]


def test_a_question_without_an_answer_proves_nothing(topo, monkeypatch):
    client = scene.aws().client("eks")

    def refused(name, _):
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, name)

    monkeypatch.setattr(client, "_make_api_call", refused)
    called = topo("verify-destroyed", "dev")
    assert called.code == 1
    assert called.out == (
        "not proven: EKS clusters: these credentials may not call DescribeCluster (AccessDeniedException); allow it\n"
    )


def test_a_sweep_removes_what_the_guards_would_have_and_looks_again(topo, node):
    inside = scene.subnet(scene.vpc())
    interface = scene.interface(inside, CNI)
    called = topo("verify-destroyed", "dev", "--sweep", "--yes")
    assert scene.instance_states(node) == ["terminated"]
    assert interface not in scene.interface_names()
    assert f"terminating {node} (g6e.8xlarge, running)" in called.err
    assert f"deleting interface {interface}" in called.err
    # VPC and subnet bear the stack's tags and aren't the guards'.
    assert called.code == 1
    assert node not in called.out
    assert "2 left of stack dev" in called.out


@pytest.mark.usefixtures("node")
def test_a_sweep_that_leaves_nothing_ends_with_zero(topo):
    assert topo("verify-destroyed", "dev", "--sweep", "--yes").code == 0
    assert topo("verify-destroyed", "dev", "--sweep").out.endswith("nothing is left of stack dev\n")


@pytest.mark.parametrize(("answer", "code", "state"), [("n", 1, "running"), ("y", 0, "terminated")])
def test_a_sweep_asks_first_and_names_the_account_and_what_goes(answer, code, state, topo, node, monkeypatch):
    asked: list[str] = []

    def reply(text: str) -> str:
        asked.append(text)
        return str(answer)

    monkeypatch.setattr("click.termui.visible_prompt_func", reply)
    called = topo("verify-destroyed", "dev", "--sweep")
    assert called.code == code
    assert scene.instance_states(node) == [state]
    assert f"account {ACCOUNT}, us-east-1: remove instance {node}?" in called.err + "".join(asked)
    assert ("nothing was swept\n" in called.err) == (answer == "n")
    assert ("1 left of stack dev\n" in called.out) == (answer == "n")


def test_a_listing_changes_nothing(topo, node):
    topo("verify-destroyed", "dev")
    topo("verify-destroyed", "dev", "--json")
    assert scene.instance_states(node) == ["running"]


def test_a_sweep_while_the_cluster_is_there_is_refused(topo, node):
    scene.cluster(scene.subnet(scene.vpc({}), {}))
    called = topo("verify-destroyed", "dev", "--sweep", "--yes")
    assert called.code == 2
    assert "cluster topolab-dev is there, so its nodes may be in use; `pulumi destroy --stack dev` first" in called.err
    assert scene.instance_states(node) == ["running"]
    assert "--sweep` removes" not in topo("verify-destroyed", "dev").out


def test_what_a_sweep_cannot_remove_is_said_and_listed(topo, node):
    ec2 = scene.aws().client("ec2")
    ec2.modify_instance_attribute(InstanceId=node, DisableApiTermination={"Value": True})
    called = topo("verify-destroyed", "dev", "--sweep", "--yes")
    assert called.code == 1
    assert "instances are left after" in called.err
    assert node in called.out


@pytest.fixture
def asked(monkeypatch) -> dict[str, object]:
    """Whom and where it looked, with an empty answer."""
    seen: dict[str, object] = {}

    def connect(**place):
        seen.update({key: value for key, value in place.items() if key != "config"})
        return scene.aws()

    def look(_aws, owner) -> Inventory:
        seen["owner"] = (owner.project, owner.stack, owner.region)
        return Inventory(left=[], kept=[], unproven=[])

    monkeypatch.setattr(verify_destroyed, "Aws", connect)
    monkeypatch.setattr(verify_destroyed, "find", look)
    return seen


def test_region_profile_and_project_are_those_of_the_files(topo, folder, asked):
    (folder / "Pulumi.dev.yaml").write_text("config:\n  aws:region: us-west-2\n  aws:profile: lab\n  topolab:old: 1\n")
    for stack in ("dev", "Pulumi.dev.yaml", str(folder / "Pulumi.dev.yaml")):
        assert topo("verify-destroyed", stack).code == 0
        assert asked == {"region": "us-west-2", "profile": "lab", "owner": ("topolab", "dev", "us-west-2")}


def test_profile_and_project_of_the_options_come_before_the_files(topo, asked):
    options = ("--region", "us-east-1", "--profile", "mine", "--project", "other")
    assert topo("verify-destroyed", "dev", *options).code == 0
    assert asked == {"region": "us-east-1", "profile": "mine", "owner": ("other", "dev", "us-east-1")}


def test_a_region_that_contradicts_the_stack_file_is_refused_before_aws_is_asked(topo, asked):
    called = topo("verify-destroyed", "dev", "--region", "eu-west-1")
    assert (called.code, asked) == (2, {})
    assert called.err == (
        "topo: --region eu-west-1: Pulumi.dev.yaml says aws:region us-east-1, so the stack stands there; leave "
        "--region out, or mend the file\n"
    )


def test_a_stack_whose_file_is_gone_needs_a_region(topo, asked):
    called = topo("verify-destroyed", "gone")
    assert called.code == 2
    assert called.err == "topo: stack file Pulumi.gone.yaml: it isn't here; give --region\n"
    topo("verify-destroyed", "gone", "--region", "us-east-1")
    assert asked["owner"] == ("topolab", "gone", "us-east-1")


def test_a_stack_file_without_a_region_says_so(topo, folder):
    (folder / "Pulumi.lab.yaml").write_text("config:\n  topolab:topology: cpu-2x1-tcp\n")
    called = topo("verify-destroyed", "lab")
    assert called.code == 2
    assert called.err.startswith("topo: stack file Pulumi.lab.yaml: it names no aws:region (a local machine's makes")


def test_a_stack_file_that_is_not_there_is_told_to_be_missing(topo, asked):
    called = topo("verify-destroyed", "Pulumi.nope.yaml", "--region", "us-east-1")
    assert (called.code, asked) == (2, {})
    assert called.err.startswith("topo: Pulumi.nope.yaml: there is no such file; give a stack file, or the name")


def test_a_name_without_a_file_or_a_trace_may_be_mistyped_and_proves_nothing(topo):
    called = topo("verify-destroyed", "devv", "--region", "us-east-1")
    assert called.code == 1
    assert called.out == (
        f"not proven: no stack file Pulumi.devv.yaml here and no trace of devv in account {ACCOUNT}, us-east-1: was "
        "the name mistyped? If not, put the file back and ask again\n"
    )
    assert json.loads(topo("verify-destroyed", "devv", "--region", "us-east-1", "--json").out)["destroyed"] is False


def test_a_bucket_that_was_kept_is_trace_enough_of_a_stack_whose_file_is_gone(topo, folder):
    scene.bucket("topolab-dev-7f3a", {**OWN, **KEPT})
    (folder / "Pulumi.dev.yaml").unlink()
    assert topo("verify-destroyed", "dev", "--region", "us-east-1").code == 0


@pytest.mark.usefixtures("node")
def test_what_a_sweep_removed_was_trace_enough_too(topo, folder):
    (folder / "Pulumi.dev.yaml").unlink()
    assert topo("verify-destroyed", "dev", "--region", "us-east-1", "--sweep", "--yes").code == 0


def test_an_account_that_nobody_named_is_said_to_be_the_credentials_own(topo, folder):
    (folder / "Pulumi.dev.yaml").write_text(_NAMELESS)
    called = topo("verify-destroyed", "dev", "--json")
    assert called.code == 0
    assert f"warning: nobody named the account: {ACCOUNT} is that of the credentials at hand" in called.err
    document = json.loads(called.out)
    assert (document["account"], document["accountIsNamed"]) == (ACCOUNT, False)
    named = topo("verify-destroyed", "dev", "--account", ACCOUNT, "--json")
    assert "nobody named" not in named.err
    assert json.loads(named.out)["accountIsNamed"] is True


@pytest.mark.usefixtures("asked")
def test_outside_the_programs_folder_the_project_is_asked_for(topo, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    called = topo("verify-destroyed", "../Pulumi.dev.yaml")
    assert called.code == 2
    assert "give --project" in called.err
    assert topo("verify-destroyed", "../Pulumi.dev.yaml", "--project", "topolab").code == 0


@pytest.mark.parametrize("way", ["option", "stack file"])
def test_an_account_that_is_not_the_stacks_proves_nothing(way, topo, folder):
    text = 'config:\n  aws:region: us-east-1\n  topolab:platform: {allowedAccounts: ["999999999999"]}\n'
    if way == "stack file":
        (folder / "Pulumi.dev.yaml").write_text(text)
    called = topo("verify-destroyed", "dev", *(["--account", "999999999999"] if way == "option" else []))
    assert called.code == 2
    assert f"of account {ACCOUNT}, and the stack stands in 999999999999" in called.err


def test_the_account_of_the_option_is_let_through(topo):
    assert topo("verify-destroyed", "dev", "--account", ACCOUNT).code == 0


def test_other_verbs_start_without_a_client_of_aws_or_kubernetes():
    script = (
        "import sys; from workloads.cli.main import main; main(['catalogue']); "
        "sys.exit(' '.join({'boto3', 'botocore', 'kubernetes'} & set(sys.modules)) or 0)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("node")
def test_what_the_table_lists_is_what_was_found(topo):
    called = json.loads(topo("verify-destroyed", "dev", "--json").out)
    assert {one["id"] for one in called["left"]} == {one.id for one in find(scene.aws(), OWNER).left}


@pytest.mark.parametrize("name", ["dev*", "dev-?", "bad name!"])
def test_a_name_that_no_stack_can_have_is_refused_before_aws_is_asked(topo, name):
    called = topo("verify-destroyed", name, "--region", "us-east-1", "--sweep", "--yes")
    assert called.code == 2
    assert f"STACK {name!r}: a stack's name has letters, digits, '.', '_' and '-' alone" in called.err
