"""The trainer's source, read as text from the installed package: what a ConfigMap carries into a pod."""

from importlib.resources import files

LOCK = "requirements.lock"
"""Hashed versions of what is added to an image's own torch."""


def trainer_files(*, with_lock: bool) -> dict[str, str]:
    """File name to text: every module of `trainer`, and its lock where wheels are brought.

    ValueError where the lock isn't installed. `trainer` is flat: a ConfigMap's keys hold no slash.
    """
    folder = files("trainer")
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".py"))
    assert names, "the installed package `trainer` has no modules"
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in names}
    if not with_lock:
        return texts
    lock = folder / LOCK
    if not lock.is_file():
        raise ValueError(
            f"trainer/{LOCK} is missing from the installed package, and the pods install their packages by "
            "its hashes; make it with `make locks`, or use an image that holds the trainer"
        )
    return {**texts, LOCK: lock.read_text(encoding="utf-8")}
