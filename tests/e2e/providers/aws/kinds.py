"""What a row of the table says of a resource type: its inputs, and the calls that make, read, change, delete it."""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from tests.e2e.providers.aws.cloud import Cloud
from tests.e2e.providers.serving import Checked, Resource
from tests.e2e.providers.values import UNKNOWN, Properties, is_unknown

TEXTS = "a map of strings"
JSON = "a JSON document"
Shape = Any
"""str, int, bool, TEXTS, JSON, [shape] or {name: shape}: what an input may be."""
Inputs = Mapping[str, Shape]

_RANDOM = 7
"""Hex digits that Pulumi puts after the logical name where a physical name is left out."""
_WORDS = {str: "a string", int: "a whole number", bool: "true or false"}


class Kind(ABC):
    """One resource type. Class attributes are the table; methods are the calls.

    `make` is exactly one changing call, so that what it made is never forgotten: everything after it is
    `finish`, which can be done again, and whose failure leaves a resource that is known and unfinished.
    """

    TYPE: ClassVar[str]
    INPUTS: ClassVar[Inputs]
    """All that it takes; others are refused by name."""
    REQUIRED: ClassVar[tuple[str, ...]] = ()
    REPLACE: ClassVar[tuple[str, ...]] = ()
    """Property paths whose change makes another object."""
    DEFAULTS: ClassVar[Properties] = {}
    NAME: ClassVar[str | None] = None
    """The input that is made up where it is left out: logical name, hyphen, seven hex digits."""
    PREFIX: ClassVar[str | None] = None
    """The input that stands for NAME, completed when it is made."""
    UNTOLD: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Object and member that AWS takes and never shows; they stay as asked."""
    COMPUTED: ClassVar[tuple[str, ...]] = ()
    """Outputs that only the made object has."""

    @abstractmethod
    def make(self, cloud: Cloud, inputs: Properties) -> str:
        """One call; the identifier."""

    def finish(self, cloud: Cloud, identifier: str, inputs: Properties, within_s: float) -> None:
        """What else it takes until it is as asked, in calls that may be repeated."""
        del cloud, identifier, inputs, within_s

    @abstractmethod
    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        """All that AWS tells of it, in the provider's names; None when it is gone."""

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        """Changes it in place. `old` and `new` are inputs."""
        del cloud, identifier, old, new
        raise AssertionError(f"{self.TYPE} has nothing to change in place")

    @abstractmethod
    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        """Deletes it; `free_s`: how long to wait until nothing depends on it."""

    @property
    def tagged(self) -> bool:
        """Whether default tags reach it."""
        return bool("tags" in self.INPUTS)

    def unknown_outputs(self, inputs: Properties) -> Properties:
        """What a preview can't say of a new one."""
        return {name: UNKNOWN for name in self.COMPUTED if name not in inputs}


def checked(kind: Kind, resource: Resource, old: Properties, new: Properties, seed: bytes) -> Checked:
    """Inputs with defaults and a name; or each argument that the type doesn't take."""
    inputs = {**kind.DEFAULTS, **{key: value for key, value in new.items() if value is not None}}
    failures = dict(_faults(kind, inputs))
    if kind.NAME and kind.NAME not in inputs and (kind.PREFIX is None or kind.PREFIX not in inputs):
        inputs[kind.NAME] = _name(resource, old.get(kind.NAME), seed)
    return Checked(inputs=inputs, failures=failures)


def same(old: Any, new: Any) -> bool:
    """True where AWS makes no difference: JSON by what it says, lists of strings in any order."""
    if isinstance(old, str) and isinstance(new, str) and old[:1] in "{[" and old != new:
        return bool(_parsed(old) == _parsed(new))
    if _is_set(old) and _is_set(new):
        return sorted(old) == sorted(new)
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return old.keys() == new.keys() and all(same(old[key], new[key]) for key in old)
    return bool(old == new)


def settled(asked: Any, live: Any, shape: Shape = None) -> Any:
    """The live value, in the words of what was asked wherever they say the same; of an object what was asked."""
    if same(asked, live):
        return asked
    if shape is TEXTS:
        return live
    if isinstance(asked, Mapping) and isinstance(live, Mapping):
        return {key: settled(asked.get(key), value) for key, value in live.items() if key in asked}
    if isinstance(asked, list) and isinstance(live, list) and len(asked) == len(live):
        return [settled(before, now) for before, now in zip(asked, live, strict=True)]
    return live


def as_asked(kind: Kind, asked: Properties, live: Properties) -> Properties:
    """The inputs that would make the live object, in the words of those that made it."""
    told = dict(live)
    for name, member in kind.UNTOLD:
        if isinstance(told.get(name), Mapping) and member in (asked.get(name) or {}):
            told[name] = {**told[name], member: asked[name][member]}
    found = {name: settled(value, told.get(name, value), kind.INPUTS.get(name)) for name, value in asked.items()}
    return {name: value for name, value in found.items() if value is not None}


def tag_list(tags: Mapping[str, str] | None, key: str = "Key", value: str = "Value") -> list[dict[str, str]]:
    """Tags as most services take them."""
    return [{key: name, value: text} for name, text in sorted((tags or {}).items())]


def tag_map(tags: list[Mapping[str, str]] | None, key: str = "Key", value: str = "Value") -> dict[str, str]:
    """Tags as the provider shows them, without AWS's own."""
    return {tag[key]: tag[value] for tag in tags or [] if not tag[key].startswith("aws:")}


def changed_tags(old: Properties, new: Properties) -> tuple[dict[str, str], list[str]]:
    """Tags to set, and keys to take away."""
    before, after = old.get("tags") or {}, new.get("tags") or {}
    return {k: v for k, v in after.items() if before.get(k) != v}, sorted(set(before) - set(after))


def random_digits(seed: bytes) -> str:
    """The end of a made-up name; the same for the same seed."""
    return hashlib.sha256(seed).hexdigest()[:_RANDOM]


def _name(resource: Resource, old: Any, seed: bytes) -> str:
    # A made-up name stays for as long as the object: the seed changes with each operation.
    if isinstance(old, str) and re.fullmatch(rf"{re.escape(resource.name)}-[0-9a-f]{{{_RANDOM}}}", old):
        return old
    return f"{resource.name}-{random_digits(seed)}"


def _faults(kind: Kind, inputs: Properties) -> Iterator[tuple[str, str]]:
    for name in kind.REQUIRED:
        if name not in inputs:
            yield name, f'Missing required argument. The argument "{name}" of {kind.TYPE} is required.'
    for name, value in inputs.items():
        if name.startswith("__"):
            continue
        if name not in kind.INPUTS:
            yield name, f"{kind.TYPE} takes no argument {name!r} here; it takes {', '.join(sorted(kind.INPUTS))}"
        else:
            yield from _misfits(kind.INPUTS[name], value, name)


def _misfits(shape: Shape, value: Any, path: str) -> Iterator[tuple[str, str]]:
    if is_unknown(value) and isinstance(value, str):
        return
    if isinstance(shape, dict) and isinstance(value, Mapping):
        for name, item in value.items():
            if name not in shape:
                yield path, f"{path}.{name}: no such argument; there are {', '.join(sorted(shape))}"
            elif item is not None:
                yield from _misfits(shape[name], item, f"{path}.{name}")
    elif isinstance(shape, list) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _misfits(shape[0], item, f"{path}[{index}]")
    elif not _fits(shape, value):
        yield path, f"{path} = {value!r}: expected {_words(shape)}"


def _fits(shape: Shape, value: Any) -> bool:
    if shape is TEXTS:
        return isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values())
    if shape is JSON:
        return isinstance(value, str) and _parsed(value) is not None
    return bool(shape in _WORDS and type(value) is shape)


def _words(shape: Shape) -> str:
    if isinstance(shape, list):
        return "a list"
    if isinstance(shape, dict):
        return "an object"
    return str(_WORDS.get(shape, shape))


def _is_set(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None
