"""A pod's own root folder: the machine's programs read-only, the pod's mounts over them.

The root is a tmpfs of binds of the host's top-level folders. Where a mount point doesn't exist on the host
(`/config`, `/opt/topolab/trainer`) the folder above it is taken apart: each of its entries is bound alone,
and the point is made beside them. So an ordinary user mounts anywhere, and the host's root stays as it is.
`/proc`, `/sys`, `/dev` and `/tmp` are the pod's own. Runs in a fresh mount namespace, as root of it.
"""

import contextlib
import os
import sys
from pathlib import Path

from workloads.lab import kernel
from workloads.lab.pod_program import PodProgram, Volume, VolumeMount

_OWN = frozenset({"proc", "sys", "dev", "tmp"})
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
_DEFAULT_SHM = "size=64m,mode=1777"  # containerd's and Docker's own default

_FLAG_WORDS = {
    "ro": kernel.MS_RDONLY,
    "nosuid": kernel.MS_NOSUID,
    "nodev": kernel.MS_NODEV,
    "noexec": kernel.MS_NOEXEC,
    "noatime": kernel.MS_NOATIME,
    "nodiratime": kernel.MS_NODIRATIME,
    "relatime": kernel.MS_RELATIME,
}
_SAFE = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC

_Points = list[tuple[str, ...]]


def enter_root(program: PodProgram) -> None:
    """Build the root that `program` names and make it this process's; OSError says what was refused."""
    kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    root = Path(program.state) / "root"
    make_folder(root, 0o755, program.run_as)
    kernel.mount("topolab", str(root), "tmpfs", kernel.MS_NODEV, "mode=755")
    # Meanwhile, else a bind of the folder that holds the scratch would hold this root again.
    kernel.mount(None, str(root), None, kernel.MS_UNBINDABLE)
    texts = _own_texts(program)
    points = [_host_path(path) for path in (*_points(program), *texts)]
    below = [point.parts[1:] for point in points if point.parts[1] not in _OWN]
    _take_apart(Path("/"), root, below, frozenset(map(str, map(_host_path, texts))), without=_OWN)
    kernel.mount(None, str(root), None, kernel.MS_PRIVATE)
    _make_read_only(root)
    _system_folders(root, program)
    _show(root, program)
    _write_texts(root, texts)
    _mount_volumes(root, program)
    kernel.change_root(str(root))


def make_folder(path: Path, mode: int, owner: tuple[int, int] | None) -> None:
    """A new folder of the pod's user, so that whoever started the lab can remove it again."""
    path.mkdir(parents=True)
    path.chmod(mode)
    if owner is not None:
        os.chown(path, *owner)


def write_files(folder: Path, volume: Volume, owner: tuple[int, int] | None) -> None:
    """The files of a config map or secret, under `folder`."""
    for file in volume.files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
        path.chmod(file.mode)
        if owner is not None:
            os.chown(path, *owner)


def _points(program: PodProgram) -> list[str]:
    folders = [container.folder for container in (*program.init, program.main) if container.folder != "/"]
    return [*(mount.path for mount in program.mounts), *folders, *program.shared]


def _own_texts(program: PodProgram) -> dict[str, str]:
    """Files of /etc that are the pod's own.

    Names come from the hosts file alone: there is no route to a server, and a resolver asked over a socket
    of the host would answer for the host.
    """
    return {
        "/etc/hosts": program.hosts,
        "/etc/hostname": f"{program.hostname}\n",
        "/etc/resolv.conf": "# This pod has no route out.\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }


def _host_path(path: str) -> Path:
    """The path without symbolic links: an absolute one would lead out of the unfinished root."""
    return Path(os.path.realpath(path))


def _assemble(source: Path, target: Path, points: _Points, files: frozenset[str]) -> None:
    """Show `source` at `target` so that all `points` (paths below it) exist there."""
    if all(_seen(source.joinpath(*point)) for point in points):
        _bind(source, target)
    else:
        _take_apart(source, target, points, files)


def _take_apart(
    source: Path, target: Path, points: _Points, files: frozenset[str], without: frozenset[str] = frozenset()
) -> None:
    """Show each entry of `source` alone and make the points beside them."""
    target.mkdir(exist_ok=True)
    for entry in _entries(source):
        if entry not in without:
            inner = [point[1:] for point in points if point[0] == entry and len(point) > 1]
            _assemble_entry(source / entry, target / entry, inner, files)
    for point in points:
        made = target.joinpath(*point)
        if not os.path.lexists(made):
            _make_point(made, is_file=str(source.joinpath(*point)) in files)


def _assemble_entry(source: Path, target: Path, points: _Points, files: frozenset[str]) -> None:
    if source.is_symlink():
        target.symlink_to(source.readlink())
    elif source.is_dir():
        _assemble(source, target, points, files)
    elif source.is_file():
        _bind(source, target)


def _seen(path: Path) -> bool:
    """Whether it exists for this user: what lies behind a closed folder doesn't."""
    try:
        return path.exists()
    except PermissionError:
        return False


def _entries(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        print(f"sandbox: what {folder} holds isn't visible in this pod ({error.strerror})", file=sys.stderr)
        return []


def _bind(source: Path, target: Path, *, needed: bool = False, owner: tuple[int, int] | None = None) -> None:
    """`source` at `target`, with all that is mounted below it (a part alone may not be shown by a user)."""
    _make_point(target, is_file=not source.is_dir(), owner=owner)
    try:
        kernel.mount(str(source), str(target), None, kernel.MS_BIND | kernel.MS_REC)
    except OSError as error:
        if needed:
            raise
        print(f"sandbox: {source} isn't visible in this pod ({error.strerror})", file=sys.stderr)


def _make_point(path: Path, *, is_file: bool, owner: tuple[int, int] | None = None) -> None:
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing if is_file or path.exists() else [path, *missing]):
        make_folder(folder, 0o755, owner)
    if is_file and not path.exists():
        path.touch()


def _make_read_only(root: Path) -> None:
    """Every mount below `root`. The host's flags are repeated: a user may add to them but not take away."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        # proc_pid_mountinfo(5): field 5 is the mount point (octal escapes), field 6 its own options.
        fields = line.split()
        point = fields[4].encode().decode("unicode_escape").encode("latin-1").decode()
        if point.startswith(f"{root}/"):
            _remount_read_only(point, fields[5])


def _remount_read_only(point: str, options: str) -> None:
    flags = kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY
    for word in options.split(","):
        flags |= _FLAG_WORDS.get(word, 0)
    # Some kinds (autofs) refuse; such a folder stays as writable as the host lets its user have it.
    with contextlib.suppress(OSError):
        kernel.mount(None, point, None, flags)


def _system_folders(root: Path, program: PodProgram) -> None:
    for name in _OWN:
        (root / name).mkdir()
    kernel.mount("proc", str(root / "proc"), "proc", _SAFE)
    try:
        kernel.mount("sysfs", str(root / "sys"), "sysfs", _SAFE | kernel.MS_RDONLY)
    except OSError:
        # Refused where the host's own /sys is masked in part; its view of the network is then the host's.
        _bind(Path("/sys"), root / "sys", needed=True)
    _own_tmp(root, program)
    _own_dev(root, program)


def _own_tmp(root: Path, program: PodProgram) -> None:
    tmp = Path(program.state) / "tmp"
    make_folder(tmp, 0o1777, program.run_as)
    make_folder(tmp / "home", 0o700, program.run_as)
    _bind(tmp, root / "tmp", needed=True)


def _own_dev(root: Path, program: PodProgram) -> None:
    dev = root / "dev"
    kernel.mount("dev", str(dev), "tmpfs", kernel.MS_NOSUID, "mode=755")
    for name in _DEVICES:
        _bind(Path("/dev") / name, dev / name, needed=True)
    for name, target in _DEVICE_LINKS.items():
        (dev / name).symlink_to(target)
    if program.gpus:
        for device in sorted(Path("/dev").glob("nvidia*")):
            _bind(device, dev / device.name, needed=True)
    (dev / "shm").mkdir()
    kernel.mount("shm", str(dev / "shm"), "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, _DEFAULT_SHM)
    (dev / "pts").mkdir()
    # Only terminals need it; some sandboxes' kernels have no devpts.
    with contextlib.suppress(OSError):
        kernel.mount("devpts", str(dev / "pts"), "devpts", _SAFE, "newinstance,ptmxmode=0666,mode=620")


def _show(root: Path, program: PodProgram) -> None:
    """Host paths that the pod's own /tmp hides, and the folders that it shares with the host."""
    for path in program.visible:
        if Path(path).parts[1] in _OWN:
            target = root / path.lstrip("/")
            _bind(Path(path), target, needed=True, owner=program.run_as)
            _remount_read_only(str(target), _options(target))
    for path in program.shared:
        _bind(Path(path), root / str(_host_path(path)).lstrip("/"), needed=True, owner=program.run_as)


def _write_texts(root: Path, texts: dict[str, str]) -> None:
    folder = root / ".topolab" / "etc"
    folder.mkdir(parents=True)
    for path, text in texts.items():
        file = folder / Path(path).name
        file.write_text(text)
        _bind(file, root / str(_host_path(path)).lstrip("/"), needed=True)


def _mount_volumes(root: Path, program: PodProgram) -> None:
    places = {volume.name: _volume_place(root, program, volume) for volume in program.volumes}
    for mount in program.mounts:
        _mount_volume(root, mount, places[mount.volume], program.run_as)


def _mount_volume(root: Path, mount: VolumeMount, place: Path, owner: tuple[int, int] | None) -> None:
    target = root / str(_host_path(mount.path)).lstrip("/")
    _bind(place, target, needed=True, owner=owner)
    if mount.read_only:
        _remount_read_only(str(target), _options(target))


def _volume_place(root: Path, program: PodProgram, volume: Volume) -> Path:
    if volume.folder is not None:
        return Path(volume.folder)
    if volume.kind == "scratch":
        place = Path(program.state) / "volumes" / volume.name
        make_folder(place, 0o777, program.run_as)
        return place
    place = root / ".topolab" / "volumes" / volume.name
    place.mkdir(parents=True)
    size = "" if volume.size_bytes is None else f",size={volume.size_bytes}"
    kernel.mount("volume", str(place), "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, f"mode=1777{size}")
    write_files(place, volume, program.run_as)
    return place


def _options(path: Path) -> str:
    """The mount's flags in the words of mountinfo."""
    flags = os.statvfs(path).f_flag
    words = {
        "nosuid": os.ST_NOSUID, "nodev": os.ST_NODEV, "noexec": os.ST_NOEXEC,
        "noatime": os.ST_NOATIME, "nodiratime": os.ST_NODIRATIME, "relatime": os.ST_RELATIME,
    }  # fmt: skip
    return ",".join(word for word, flag in words.items() if flags & flag)
