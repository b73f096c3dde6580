"""Versions that must still exist, and go together."""

from collections.abc import Mapping, Sequence
from datetime import date

from workloads.operations.preflight.rows import Row, green, grey, red


def numbers(version: str) -> tuple[int, ...]:
    """`1.35` or `v3.259.0` as numbers that compare."""
    return tuple(
        int(part) for part in version.removeprefix("v").split("-")[0].split("+")[0].split(".") if part.isdigit()
    )


def kubernetes(wanted: str, offered: Mapping[str, tuple[str, date | None]], today: date) -> Row:
    """`offered`: EKS's versions, each with its status and the end of standard support."""
    check = "Kubernetes"
    if wanted not in offered or offered[wanted][0] == "UNSUPPORTED":
        newest = max(offered, key=numbers, default="none")
        return red(
            check,
            f"EKS doesn't offer {wanted} any more (newest: {newest})",
            "raise KUBERNETES in workloads/catalogue/versions.py, with an AMI and a Karpenter that know it",
        )
    status, ends = offered[wanted]
    if status == "EXTENDED_SUPPORT" or (ends is not None and ends < today):
        return red(
            check,
            f"{wanted} is in extended support, six times the price of a cluster's hour",
            "raise KUBERNETES in workloads/catalogue/versions.py",
        )
    return green(check, f"EKS supports {wanted}" + ("" if ends is None else f" until {ends}"))


def karpenter(kubernetes_version: str, karpenter_version: str, newest_supported: str) -> Row:
    """Karpenter's own matrix."""
    check = "Karpenter"
    if numbers(kubernetes_version) > numbers(newest_supported):
        return red(
            check,
            f"{karpenter_version} knows Kubernetes up to {newest_supported}, the stack has {kubernetes_version}",
            "raise both in workloads/catalogue/versions.py",
        )
    return green(check, f"{karpenter_version} knows Kubernetes {kubernetes_version}")


def node_image(alias: str, parameter: str, image_id: str | None) -> Row:
    """The image that Karpenter will resolve the alias to; None: AWS no longer publishes it."""
    check = "GPU node image"
    if image_id is None:
        return red(
            check,
            f"{alias} isn't published in this region ({parameter})",
            "take a newer date for GPU_AMI_ALIAS in workloads/catalogue/versions.py",
        )
    return green(check, f"{alias} is {image_id}")


def image(reference: str, status: int, digest: str | None) -> Row:
    """`status`: the registry's answer to a question for the manifest."""
    check = "image"
    if status == 200 and digest:
        pinned = "" if "@" in reference else "; `--pin` writes it into the stack file"
        return green(check, f"{reference} is {digest}{pinned}")
    if status == 404:
        return red(check, f"its registry has no {reference}", "correct platform.image")
    return _unreadable(check, reference, status)


def chart(name: str, version: str, status: int, versions: Sequence[str] | None) -> Row:
    """`versions`: those of the repository's index; None: the registry was asked for this one alone."""
    check = f"chart {name.rsplit('/', 1)[-1]}"
    if status == 404 or (status == 200 and versions is not None and version not in versions):
        newest = f" (newest: {max(versions, key=numbers)})" if versions else ""
        return red(check, f"{version} isn't published any more{newest}", "raise it in workloads/catalogue/versions.py")
    if status == 200:
        return green(check, f"{version} is published")
    return _unreadable(check, name, status)


def _unreadable(check: str, what: str, status: int) -> Row:
    why = "may not be read without a login" if status in (401, 403) else f"isn't answered for ({status})"
    return grey(check, f"{what} {why}", "the nodes pull with their own rights; look whether those suffice")


def model_token(model: str, status: int, *, has_token: bool) -> Row:
    """`status`: the hub's answer whether the token may read the model."""
    check = "model token"
    if status == 200:
        return green(check, f"it reads {model}")
    if status == 401:
        return red(
            check,
            f"{model} is gated and the token isn't known" if has_token else f"{model} is gated and there is no token",
            "pulumi config set --secret topolab:hfToken",
        )
    if status == 403:
        return red(
            check, f"the token's account may not read {model}", f"accept its licence: https://huggingface.co/{model}"
        )
    if status == 404:
        return red(check, f"there is no model {model}", "correct workloads/catalogue/models.py")
    return grey(check, f"the hub doesn't say whether the token reads {model} ({status})", "call again later")
