"""A token that was given as a secret stands nowhere in the clear in what a run leaves on disk.

One folder is left out by name: etcd's. Whoever may read a cluster's etcd reads its Secrets; on EKS these are
encrypted by AWS, here nobody does it.
"""

import base64
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.engine.events import kind_of
from tests.e2e.walk import STACK, must_be_empty
from workloads.planning.plan import NAMESPACE

pytestmark = pytest.mark.e2e

TOKEN = f"hf_{secrets.token_hex(17)}"
KEY = "topolab:hfToken"
WITNESSES = (f"topolab-{STACK}", "NodePool", "wikitext")
"""What is no secret and is all over the place."""
CREDENTIALS = "credentials of the kubeconfig"
_SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"


@pytest.fixture(scope="module")
def left_on_disk(standing, module_workspace, installation) -> dict[str, list[str]]:
    """A whole life of a stack that needs the token; files of account, cluster and user that hold a text, by text."""
    user = module_workspace
    user.init(STACK)
    user.set_secret(STACK, KEY, TOKEN)
    user.set(STACK, "topolab:run.data.source", "hf:Salesforce/wikitext")
    user.preview(STACK, "--diff").must_succeed()
    user.up(STACK, "--skip-preview").must_succeed()
    held = [one["data"] for one in standing.api.items(_SECRETS) if one["type"] == "Opaque"]
    assert [base64.b64decode(value).decode() for data in held for value in data.values()] == [TOKEN]
    user.refresh(STACK, "--diff").must_succeed()
    user.outputs(STACK)
    guards = [one for one in user.resources(STACK) if "kubeconfig" in one.get("inputs", {})]
    assert {kind_of(one["urn"]).rpartition(":")[2] for one in guards} >= {"NodesDrained", "kubernetes"}
    user.set_secret(STACK, KEY, f"{TOKEN}-another")
    user.up(STACK, "--diff").must_succeed()
    user.destroy(STACK, "--diff", "--skip-preview").must_succeed()
    searched = {str(path): path.read_bytes() for path in files(standing.site.folder, user.folder, installation.home)}
    found = {
        text: [path for path, held in searched.items() if text.encode() in held]
        for text in (*written(TOKEN), *credentials(standing.site.kubeconfig), *WITNESSES)
    }
    own = [path for text in credentials(standing.site.kubeconfig) for path in found[text]]
    return {**found, "": list(searched), CREDENTIALS: own}


def files(*folders: Path) -> Iterator[Path]:
    """Everything but etcd's own; links lead out of the run."""
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink() and "etcd" not in path.relative_to(folder).parts[:-1]:
                yield path


def written(token: str) -> Iterable[str]:
    """The token, and the same in base64 at any of its three offsets."""
    yield token
    for offset in range(3):
        encoded = base64.b64encode(b"x" * offset + token.encode()).decode()
        # Without the letters that depend on what stands before and after.
        yield encoded[4 if offset else 0 : -4]


def credentials(kubeconfig: Path) -> list[str]:
    """What lets its holder into the cluster: the admin's key, as the kubeconfig holds it and as it is."""
    (user,) = yaml.safe_load(kubeconfig.read_text())["users"]
    encoded = user["user"]["client-key-data"]
    return [encoded, base64.b64decode(encoded).decode().splitlines()[1]]


def test_the_kubeconfigs_key_is_in_no_file_of_the_user_though_provider_and_guard_keep_it_in_the_state(
    left_on_disk, standing, module_workspace, installation
):
    users = (module_workspace.folder, installation.home)
    holding = [path for path in left_on_disk[CREDENTIALS] if any(Path(path).is_relative_to(one) for one in users)]
    assert holding == []
    # The same search finds it where the account keeps it.
    assert str(standing.site.kubeconfig) in left_on_disk[CREDENTIALS]


@pytest.mark.parametrize("text", list(written(TOKEN)), ids=["clear", "base64", "base64 by one", "base64 by two"])
def test_no_file_holds_the_token(left_on_disk, text):
    assert left_on_disk[text] == []


@pytest.mark.parametrize(
    "name",
    ["operations.jsonl", ".events.jsonl", "-up.txt", "-preview.txt", "-refresh.txt", "-destroy.txt", "/logs/cloud.log",
     "/logs/karpenter", "Pulumi.dev.yaml", "state/.pulumi/stacks", "state/.pulumi/history", "state/.pulumi/backups"],
)  # fmt: skip
def test_the_same_search_finds_what_is_no_secret(left_on_disk, name):
    """A search that finds nothing at all would prove nothing."""
    assert [path for text in WITNESSES for path in left_on_disk[text] if name in path]


def test_all_that_was_written_is_searched(left_on_disk):
    """Logs that hold no word of ours on a good day, too."""
    for name in (
        "provider-aws.log",
        "provider-kubernetes.log",
        "kube-apiserver.log",
        "trainer-controller-manager",
        "/helm/",
    ):
        assert [path for path in left_on_disk[""] if name in path], name


def test_the_account_and_the_cluster_are_empty_after_it(left_on_disk, standing, module_workspace):
    assert left_on_disk
    must_be_empty(standing, module_workspace, STACK)
