import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workloads.lab.capability import Capability, find_tool, probe

TOOLS = ("unshare", "nsenter", "mount", "ip", "tc")


def _folder_with(folder: Path, *names: str) -> str:
    for name in names:
        (folder / name).symlink_to(find_tool(name))
    return str(folder)


@pytest.mark.lab
def test_this_machine_makes_namespaces_and_shapes_links() -> None:
    found = probe()
    assert found.shaping
    assert found.rights == ("root" if os.geteuid() == 0 else "user")


@pytest.mark.lab
def test_without_tc_pods_get_namespaces_but_no_rate_and_the_package_is_named(tmp_path: Path) -> None:
    found = probe(_folder_with(tmp_path, *(name for name in TOOLS if name != "tc")))
    assert found.rights is not None
    assert not found.shaping
    assert found.reason == "`tc` isn't installed (package iproute2), so no rate can be set"


def test_without_ip_or_unshare_the_lab_stays_on_the_loopback_and_names_the_packages(tmp_path: Path) -> None:
    found = probe(_folder_with(tmp_path, "nsenter", "mount", "tc"))
    assert found == Capability(
        None,
        False,
        "not installed: `unshare` (package util-linux), `ip` (package iproute2); pods run on the loopback, "
        "links are unshaped",
    )


def test_on_another_system_than_linux_the_lab_stays_on_the_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert probe().rights is None
    assert probe().reason == "darwin has no network namespaces; links are unshaped"


def test_a_missing_tool_is_named_with_its_package(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`tc` isn't installed; install the package iproute2"):
        find_tool("tc", str(tmp_path))


@pytest.mark.lab
def test_a_shaper_that_the_kernel_refuses_leaves_namespaces_without_rates(tmp_path: Path) -> None:
    (tmp_path / "tc").write_text("#!/bin/sh\necho 'Error: Specified qdisc kind is unknown.' >&2\nexit 2\n")
    (tmp_path / "tc").chmod(0o755)
    found = probe(_folder_with(tmp_path, *(name for name in TOOLS if name != "tc")))
    assert found.rights is not None
    assert not found.shaping
    assert "refuses a rate on an interface (tc tbf): Error: Specified qdisc kind is unknown." in found.reason


@pytest.mark.lab
def test_refused_namespaces_are_told_with_the_setting_that_would_allow_them() -> None:
    # A user namespace may forbid its children theirs; without capabilities its root is an ordinary user.
    script = "from workloads.lab.capability import probe; found = probe(); print(found.rights, found.reason)"
    refuse = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    powerless = [find_tool("setpriv"), "--bounding-set=-all", "--inh-caps=-all"]
    as_root_of_a_namespace = [find_tool("unshare"), "--user", "--map-root-user"]
    said = subprocess.run(
        [*as_root_of_a_namespace, "sh", "-c", refuse, "sh", *powerless, sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    ).stdout
    assert said.startswith("None namespaces refused to root (")
    assert "namespaces refused to an ordinary user (" in said
    assert "`sudo sysctl -w user.max_user_namespaces=15000` would allow them" in said
    assert said.endswith("pods run on the loopback, links are unshaped\n")


def test_sudo_is_asked_without_a_password_and_without_a_user_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy("/bin/true", tmp_path / "sudo")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    command = Capability("sudo", True, "").command(["program"])
    assert command[:3] == [str(tmp_path / "sudo"), "-n", find_tool("unshare")]
    assert "--user" not in command
    assert Capability(None, False, "").command(["program"]) == ["program"]
