"""What this machine lets the lab do: namespaces of its own, links with a rate, or only the loopback.

Nothing is inferred from versions or settings: the probe does what the lab will do (namespaces, a bridge, a
pair of interfaces, a shaper), in namespaces that end with it, and the first refusal becomes the reason.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Rights = Literal["user", "root", "sudo"]
"""Who makes the namespaces: an ordinary user (as root of a user namespace), root itself, or sudo."""

_PROBE_LIMIT_S = 10

# Each step of the probe ends the shell with its own code, so that the code names what was refused.
_PROBE = """
{mount} -t tmpfs topolab /sys || exit 30
{ip} link add topolab0 type bridge || exit 31
{ip} link add topolab1 type veth peer name topolab2 || exit 32
{shape} || exit 40
"""
_STEPS = {
    30: "a mount of one's own",
    31: "a bridge",
    32: "a pair of virtual interfaces",
    40: "a rate on an interface (tc tbf)",
}
_SHAPER_REFUSED = 40

# Settings that refuse an ordinary user's namespaces, with the value that refuses and the kernels that have
# them.
_REFUSING_SETTINGS = (
    ("kernel/unprivileged_userns_clone", "0", "1"),  # Debian before 11 and kernels with its patch
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),  # Ubuntu from 23.10
    ("user/max_user_namespaces", "0", "15000"),  # any kernel; RHEL 7's default
)


@dataclass(frozen=True)
class Capability:
    """What the lab can do here, and why not more."""

    rights: Rights | None
    """None: no namespaces; pods run on the machine's own loopback."""
    shaping: bool
    """Whether a link's rate can be set."""
    reason: str
    """One sentence for the user."""

    def command(self, program: list[str]) -> list[str]:
        """`program` in outer namespaces of its own, whose end is the end of every process in them."""
        if self.rights is None:
            return program
        return [*_outer_namespaces(self.rights, None), *program]


def find_tool(name: str, search_path: str | None = None) -> str:
    """Where a program of iproute2 or util-linux lies; ValueError when it isn't installed."""
    found = _tool(name, search_path)
    if found is None:
        raise ValueError(f"the program `{name}` isn't installed; install the package {_package(name)}")
    return found


def probe(search_path: str | None = None) -> Capability:
    """Try, from the least rights to the most, and say what is possible (about 50 ms).

    `search_path` replaces PATH and the system folders.
    """
    if not sys.platform.startswith("linux"):
        return Capability(None, False, f"{sys.platform} has no network namespaces; links are unshaped")
    missing = [name for name in ("unshare", "nsenter", "mount", "ip") if _tool(name, search_path) is None]
    if missing:
        names = ", ".join(f"`{name}` (package {_package(name)})" for name in missing)
        return Capability(None, False, f"not installed: {names}; pods run on the loopback, links are unshaped")
    refusals = []
    for rights in _candidates(search_path):
        found = _try(rights, search_path)
        if isinstance(found, Capability):
            return found
        refusals.append(found)
    return Capability(None, False, f"{'; '.join(refusals)}; pods run on the loopback, links are unshaped")


def _candidates(search_path: str | None) -> list[Rights]:
    """Root needs no user namespace, and with one it would lose the right to other users' files."""
    if os.geteuid() == 0:
        return ["root", "user"]
    return ["user", "sudo"] if _tool("sudo", search_path) else ["user"]


def _try(rights: Rights, search_path: str | None) -> Capability | str:
    """The capability with these rights, or the sentence that says what was refused."""
    tc = _tool("tc", search_path)
    shape = f"{tc} qdisc add dev topolab1 root tbf rate 1mbit burst 16kb latency 50ms" if tc else "exit 0"
    script = _PROBE.format(mount=find_tool("mount", search_path), ip=find_tool("ip", search_path), shape=shape)
    command = [*_outer_namespaces(rights, search_path), "/bin/sh", "-c", script]
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PROBE_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"namespaces by {_WHO[rights]} didn't come up within {_PROBE_LIMIT_S} s"
    said = " ".join(result.stderr.split())
    if result.returncode == 0:
        return _granted(rights, tc)
    if result.returncode == _SHAPER_REFUSED:
        return Capability(rights, False, f"the kernel refuses {_STEPS[_SHAPER_REFUSED]}: {said}")
    refused = _STEPS.get(result.returncode, "namespaces")
    return f"{refused} refused to {_WHO[rights]} ({said}){_remedy(rights)}"


_WHO: dict[Rights, str] = {"user": "an ordinary user", "root": "root", "sudo": "sudo without a password"}


def _granted(rights: Rights, tc: str | None) -> Capability:
    if tc is None:
        sentence = f"`tc` isn't installed (package {_package('tc')}), so no rate can be set"
        return Capability(rights, False, sentence)
    return Capability(rights, True, f"network namespaces made by {_WHO[rights]}, rates set by tc")


def _outer_namespaces(rights: Rights, search_path: str | None) -> list[str]:
    """--kill-child: when `unshare` is killed, the first process of the pid namespace is, hence all of it."""
    own = ["--net", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]
    unshare = find_tool("unshare", search_path)
    if rights == "user":
        return [unshare, "--user", "--map-root-user", *own]
    if rights == "sudo":
        return [find_tool("sudo", search_path), "-n", unshare, *own]
    return [unshare, *own]


def _remedy(rights: Rights) -> str:
    if rights != "user":
        return ""
    for setting, refusing, allowing in _REFUSING_SETTINGS:
        file = Path("/proc/sys") / setting
        if file.exists() and file.read_text().strip() == refusing:
            return f": `sudo sysctl -w {setting.replace('/', '.')}={allowing}` would allow them"
    return ""


def _tool(name: str, search_path: str | None) -> str | None:
    # Debian keeps `ip` and `tc` in sbin, which isn't in an ordinary user's PATH.
    everywhere = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin"
    return shutil.which(name, path=everywhere if search_path is None else search_path)


def _package(tool: str) -> str:
    return "iproute2" if tool in {"ip", "tc"} else "util-linux"
