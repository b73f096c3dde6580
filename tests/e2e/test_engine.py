"""The engine, its Python host and the driver, on a small program: no cloud, no cluster."""

import json
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.version import Version

from tests.e2e.children import wait_until
from tests.e2e.engine import processes
from tests.e2e.engine.events import name_of, summary_of

pytestmark = pytest.mark.e2e

UNUSED = {
    "RESOURCE_MONITOR_FEATURE_STATE_MIGRATIONS",  # a resource option; the SDK itself refuses it without the feature
    "RESOURCE_MONITOR_FEATURE_INVOKE_OUTPUT_VALUES",  # the Python SDK of this release never asks for these two
    "RESOURCE_MONITOR_FEATURE_CALL_OUTPUT_VALUES",
}
"""What engine 3.259 doesn't serve of what SDK 3.272 knows."""


def leaves(tmp_path: Path) -> list[str]:
    """What the sample's provider did, in order."""
    log = tmp_path / "leaves.log"
    return log.read_text().splitlines() if log.exists() else []


def names(urns) -> list[str]:
    return [name_of(urn) for urn in urns]


def words_of(number: int) -> str:
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def test_a_stack_goes_up_changes_and_goes_down_and_the_driver_counts_as_the_engine_does(sample, tmp_path):
    planned = sample.preview("dev").must_succeed()
    assert names(planned.changes.created) == ["sample-dev", "leaf-0", "leaf-1", "leaf-2"]
    assert leaves(tmp_path) == []

    made = sample.up("dev").must_succeed()
    assert names(made.changes.created) == ["leaf-0", "leaf-1", "leaf-2", "sample-dev"]
    assert summary_of(made.events) == {"create": 4}
    assert leaves(tmp_path) == ["create leaf-0", "create leaf-1", "create leaf-2"]
    assert 50 < made.peak_mib < 2048

    again = sample.up("dev", "--skip-preview").must_succeed()
    assert again.changes.is_none
    assert summary_of(again.events) == {"same": len(again.changes.same)}

    sample.set("dev", "text", "two")
    changed = sample.up("dev", "--skip-preview").must_succeed()
    assert names(changed.changes.updated) == ["leaf-0", "leaf-1", "leaf-2"]
    sample.set("dev", "kind", "other")
    replaced = sample.up("dev", "--skip-preview").must_succeed()
    assert sorted(names(replaced.changes.replaced)) == ["leaf-0", "leaf-1", "leaf-2"]

    gone = sample.destroy("dev").must_succeed()
    assert names(gone.changes.deleted) == ["leaf-2", "leaf-1", "leaf-0", "sample-dev"]
    assert sample.resources("dev") == []


def test_the_program_sees_the_stack_and_its_configuration_and_secrets_stay_closed(sample):
    sample.set("dev", "mapping.a", "b")
    sample.set_secret("dev", "token", "shown-to-the-program-alone")
    outcome = sample.up("dev", "--skip-preview").must_succeed()
    assert sample.outputs("dev") == {
        "stack": "dev", "project": "sample", "organization": "organization", "preview": False,
        "mapping": {"a": "b"}, "token": "[secret]",
    }  # fmt: skip
    assert "shown-to-the-program-alone" not in outcome.output + json.dumps(sample.export("dev"))
    shown = sample.pulumi("stack", "output", "--stack", "dev", "--show-secrets", "token")
    assert shown.output.strip() == "shown-to-the-program-alone"

    other = {"PULUMI_CONFIG_PASSPHRASE": "not this one"}
    closed = sample.pulumi("up", "--stack", "dev", "--yes", variables=other)
    assert closed.returncode != 0
    assert "incorrect passphrase" in closed.output


def test_what_a_user_got_wrong_is_a_sentence(sample):
    sample.set("dev", "sentence", "sample:leaves = -1: give a count")
    outcome = sample.up("dev")
    assert outcome.returncode != 0
    assert outcome.errors[0] == "sample:leaves = -1: give a count"
    assert "Traceback" not in outcome.output


def test_a_fault_of_the_program_shows_its_own_lines(sample):
    sample.set("dev", "crash", "boom")
    outcome = sample.up("dev")
    assert outcome.returncode != 0
    (error,) = outcome.errors
    assert error.startswith("Program failed with an unhandled exception:")
    assert error.endswith("RuntimeError: boom")
    assert "pulumi-language-python-exec" not in error, "frames above the program are left out"


def test_a_refused_resource_is_the_only_fault_told_and_the_next_up_goes_on(sample, tmp_path):
    sample.set("dev", "refused", "1")
    failed = sample.up("dev", "--skip-preview")
    assert failed.returncode != 0
    assert names(failed.changes.failed) == ["leaf-1"]
    assert any("leaf leaf-1 is refused" in error for error in failed.errors)
    assert not any("shut down" in error or "shutting down" in error for error in failed.errors), failed.errors
    assert leaves(tmp_path) == ["create leaf-0"]

    sample.set("dev", "refused", "99")
    assert names(sample.up("dev", "--skip-preview").must_succeed().changes.created) == ["leaf-1", "leaf-2"]


def test_an_interrupted_engine_finishes_the_resource_at_hand(sample, tmp_path):
    running = up_to_the_gate(sample, tmp_path)
    running.interrupt()
    (tmp_path / "gate").touch()
    outcome = running.finish(60)
    assert outcome.returncode != 0
    assert "cancel" in outcome.output
    assert leaves(tmp_path) == ["create leaf-0", "wait leaf-1", "create leaf-1"]
    assert processes.marked(sample.mark) == []

    assert names(sample.up("dev", "--skip-preview").must_succeed().changes.created) == ["leaf-2"]


def test_a_killed_engine_leaves_a_lock_and_a_pending_create_but_no_process(sample, tmp_path):
    running = up_to_the_gate(sample, tmp_path)
    running.process.kill()

    def hosts() -> list[int]:
        return [one for one in processes.marked(sample.mark) if "language_host" in words_of(one)]

    wait_until(lambda: not hosts(), 5.0, "the language host has followed its engine")
    killed = running.kill()
    assert killed.returncode == -9
    assert processes.marked(sample.mark) == []

    locked = sample.up("dev", "--skip-preview")
    assert locked.returncode != 0
    assert "the stack is currently locked" in locked.output

    (tmp_path / "gate").touch()
    sample.cancel("dev").must_succeed()
    assert [one["resource"]["inputs"]["leaf"] for one in sample.pending("dev")] == ["leaf-1"]
    sample.refresh("dev", "--skip-preview", "--clear-pending-creates").must_succeed()
    assert sample.pending("dev") == []
    assert names(sample.up("dev", "--skip-preview").must_succeed().changes.created) == ["leaf-1", "leaf-2"]


def up_to_the_gate(sample, tmp_path):
    """An up that waits in the creation of leaf-1 until the gate is there."""
    sample.set("dev", "gate", str(tmp_path / "gate"))
    sample.set("dev", "gated", "1")
    running = sample.start_up("dev", "--skip-preview")
    # The engine has written down what it is at before it asks the provider.
    assert running.wait_for(lambda: "wait leaf-1" in leaves(tmp_path), 60, "leaf-1 waits at its gate")
    return running


def test_nothing_of_the_shell_reaches_the_engine(sample, monkeypatch):
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "somebody else's")
    monkeypatch.setenv("AWS_PROFILE", "production")
    running = sample.start("whoami")
    held = Path(f"/proc/{running.process.pid}/environ").read_text()
    assert running.finish().returncode == 0
    assert processes.MARK in held
    assert "AWS_PROFILE" not in held
    assert "somebody else" not in held


def test_about_names_the_interpreter_and_the_plugins_of_the_environment(sample):
    about = sample.json("about", "--json")
    assert about["runtime"]["executable"] == str(sample.project / ".venv" / "bin" / "python")
    plugins = {one["name"]: one["version"] for one in about["plugins"] if one["kind"] != "language"}
    assert plugins == {name: version(f"pulumi-{name}") for name in ("aws", "eks", "kubernetes")}


def test_install_fetches_nothing_and_says_what_lacks(sample):
    requirements = sample.project / "requirements.txt"
    requirements.write_text("pulumi>=3\n")
    assert sample.pulumi("install", "--no-plugins").returncode == 0
    requirements.write_text("pulumi>=3\npulumi-nowhere==1.2\n")
    outcome = sample.pulumi("install", "--no-plugins")
    assert outcome.returncode != 0
    assert "lacks pulumi-nowhere==1.2" in outcome.output


def test_a_project_without_its_environment_says_what_to_do(sample):
    (sample.project / ".venv").unlink()
    outcome = sample.up("dev")
    assert outcome.returncode != 0
    assert "doesn't exist; run `make set-up`" in outcome.output


def test_the_engine_serves_what_the_sdk_asks_for(sample):
    """The engine's release is older than the SDK's: its later modules can't be had.

    They agree when the engine serves every feature that this SDK can ask a monitor for, those apart that the program
    doesn't use, and answers the SDK's own question for a version.
    """
    engine = Version(sample.pulumi("version").output.strip().removeprefix("v"))
    sdk = Version(version("pulumi"))
    assert (engine.major, engine <= sdk) == (sdk.major, True)
    (sample.project / "__main__.py").write_text(
        "import pulumi\n"
        "from pulumi.runtime.proto import resource_pb2\n"
        f"pulumi.require_pulumi_version('={engine}')\n"
        "served = pulumi.runtime.settings.SETTINGS.monitor_features\n"
        "known = dict(resource_pb2.ResourceMonitorFeature.items())\n"
        "pulumi.export('lacking', sorted(name for name, number in known.items() if number not in served))\n"
        "pulumi.export('known', len(known))\n"
    )
    sample.up("dev", "--skip-preview").must_succeed()
    outputs = sample.outputs("dev")
    assert outputs["known"] > 10
    assert set(outputs["lacking"]) <= UNUSED
