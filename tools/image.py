"""Build the trainer's image and push it: `make image REGISTRY=...`; what it prints goes into the stack file.

With whatever builds images here. Nobody needs it for a first day: `image: stock` has neither build nor registry.
Runs on a bare Python: standard library only.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = "trainer/Dockerfile"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def main(argv: Sequence[str]) -> int:
    """0 when the image is in its registry, and its reference by digest has been printed."""
    parser = argparse.ArgumentParser(prog="make image", description=__doc__)
    parser.add_argument("--registry", default="")
    parser.add_argument("--base", default="")
    given = parser.parse_args(argv)
    try:
        print(made_known(publish(given.registry, given.base or default_base(), find_builder(), ROOT)))
    except ValueError as error:
        print(f"image: {error}", file=sys.stderr)
        return 1
    return 0


def publish(registry: str, base: str, builder: str, root: Path) -> str:
    """Build from these sources and push; the reference by digest. ValueError where a step fails."""
    if not re.fullmatch(r"[\w.-]+(:\d+)?(/[\w.-]+)+", registry):
        raise ValueError(
            f"REGISTRY is {registry!r}; name the repository that the image goes to, for instance "
            "make image REGISTRY=123456789012.dkr.ecr.us-east-1.amazonaws.com/trainer"
        )
    files = sources(root)
    reference = f"{registry}:{tag(files, base)}"
    with tempfile.TemporaryDirectory(prefix="topolab-image-") as folder:
        context = Path(folder)
        _write(files, context)
        arguments = ["build", "--file", DOCKERFILE, "--build-arg", f"BASE={base}", "--tag", reference, "."]
        _run([builder, *arguments], context, f"building {reference} failed (see above)")
        digest = PUSHES[Path(builder).name](builder, reference, context)
    return f"{registry}@{digest}"


def made_known(reference: str) -> str:
    """What to do with it."""
    return f"pushed; in the stack file:\n  topolab:platform:\n    image: {reference}"


def find_builder(names: Sequence[str] = ("docker", "podman", "buildah")) -> str:
    """Path of the first builder that is there."""
    for name in names:
        found = shutil.which(name)
        if found is not None:
            return found
    raise ValueError(
        f"none of {', '.join(names)} is on PATH, and one of them builds the image; install one, or leave "
        "`image: stock` in the stack file, which needs no build"
    )


def default_base() -> str:
    """The base that the Dockerfile names."""
    (base,) = re.findall(r"^ARG BASE=(\S+)$", (ROOT / DOCKERFILE).read_text(encoding="utf-8"), re.MULTILINE)
    return str(base)


def sources(root: Path) -> Mapping[str, bytes]:
    """All that the image is made of, and nothing else: no environment, no record reaches the builder."""
    folder = root / "trainer"
    paths = [*folder.glob("*.py"), folder / "requirements.lock", folder / "Dockerfile"]
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(paths)}


def tag(files: Mapping[str, bytes], base: str) -> str:
    """Of the sources: the same ones are the same tag."""
    digest = hashlib.sha256(base.encode())
    for name, content in sorted(files.items()):
        digest.update(f"\0{name}\0".encode() + content)
    return digest.hexdigest()[:12]


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)


def _push_and_ask(builder: str, reference: str, context: Path) -> str:
    """docker knows the digest afterwards."""
    _push([builder, "push", reference], reference, context)
    form = "{{range .RepoDigests}}{{println .}}{{end}}"
    asked = subprocess.run(
        [builder, "inspect", "--format", form, reference], capture_output=True, text=True, check=False
    )
    # An image of the same content may have been pushed elsewhere before.
    own = [line for line in asked.stdout.splitlines() if line.startswith(f"{reference.rsplit(':', 1)[0]}@")]
    return _digest_in("\n".join(own), reference)


def _push_and_write(builder: str, reference: str, context: Path) -> str:
    """podman and buildah write the digest into a file."""
    written = context / "digest"
    _push([builder, "push", "--digestfile", str(written), reference], reference, context)
    return _digest_in(written.read_text() if written.exists() else "", reference)


PUSHES: Mapping[str, Callable[[str, str, Path], str]] = {
    "docker": _push_and_ask,
    "podman": _push_and_write,
    "buildah": _push_and_write,
}
"""How each builder pushes and tells the digest."""


def _push(command: Sequence[str], reference: str, context: Path) -> None:
    registry = reference.split("/", 1)[0]
    _run(
        command,
        context,
        f"pushing {reference} failed (see above); log in to {registry}, make the repository, try again",
    )


def _digest_in(text: str, reference: str) -> str:
    found = _DIGEST.search(text)
    if found is None:
        raise ValueError(f"{reference} is pushed, but the builder tells no digest; ask the registry for it")
    return found[0]


def _run(command: Sequence[str], folder: Path, sentence: str) -> None:
    if subprocess.run(command, cwd=folder, check=False).returncode:
        raise ValueError(sentence)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
