"""Property values of Pulumi's provider protocol as plain Python, and what differs between two of them.

Integers stay integers, an unknown value is the SDK's own string, a secret is a `Secret` around its value.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from google.protobuf import struct_pb2

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""Stands for a string not known before the update (pulumi.runtime.rpc.UNKNOWN)."""

Properties = dict[str, Any]
Kind = Literal["add", "delete", "update"]

_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"
_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_UNKNOWNS = frozenset(
    {
        UNKNOWN,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)
"""The engine writes one of these by the type that it expects (sdk/go/common/resource/plugin/rpc.go)."""


@dataclass(frozen=True)
class Secret:
    """A value that the state encrypts."""

    value: Any


def from_struct(struct: struct_pb2.Struct) -> Properties:
    """The properties of a message."""
    return {key: _from_value(value) for key, value in struct.fields.items()}


def to_struct(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    """A message of properties; None is written as null."""
    return struct_pb2.Struct(fields={key: _to_value(value) for key, value in properties.items()})


def opened(value: Any) -> Any:
    """The value without any `Secret` around or inside."""
    if isinstance(value, Secret):
        return opened(value.value)
    if isinstance(value, Mapping):
        return {key: opened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [opened(item) for item in value]
    return value


def is_unknown(value: Any) -> bool:
    """True where the value, or anything inside, isn't known yet."""
    if isinstance(value, Secret):
        return is_unknown(value.value)
    if isinstance(value, Mapping):
        return any(is_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(is_unknown(item) for item in value)
    return isinstance(value, str) and UNKNOWN in value


def differences(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Kind]]:
    """Property paths, in Pulumi's notation, at which two values differ, and how; an unknown new value differs."""
    old, new = opened(old), opened(new)
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from _at(f"{path}{_step(key, path)}", key, old, new)
    elif isinstance(old, list) and isinstance(new, list):
        before, after = dict(enumerate(old)), dict(enumerate(new))
        for index in sorted({*before, *after}):
            yield from _at(f"{path}[{index}]", index, before, after)
    elif old != new:
        yield path, "update"


def _at(path: str, key: Any, old: Mapping[Any, Any], new: Mapping[Any, Any]) -> Iterator[tuple[str, Kind]]:
    before, after = old.get(key), new.get(key)
    if before is None and after is None:
        return
    if before is None:
        yield path, "add"
    elif after is None:
        yield path, "delete"
    else:
        yield from differences(before, after, path)


def _step(key: str, path: str) -> str:
    if not key.replace("_", "").isalnum():
        return f'["{key}"]'
    return f".{key}" if path else key


def _from_value(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _from_object(value.struct_value)
    if kind == "list_value":
        return [_from_value(item) for item in value.list_value.values]
    if kind == "number_value":
        return int(value.number_value) if value.number_value.is_integer() else value.number_value
    if kind == "string_value":
        return UNKNOWN if value.string_value in _UNKNOWNS else value.string_value
    return value.bool_value if kind == "bool_value" else None


def _from_object(struct: struct_pb2.Struct) -> Any:
    signature = struct.fields[_SIGNATURE].string_value if _SIGNATURE in struct.fields else None
    if signature is None:
        return from_struct(struct)
    if signature == _SECRET:
        return Secret(_from_value(struct.fields["value"]))
    if signature == _OUTPUT:
        inner = _from_value(struct.fields["value"]) if "value" in struct.fields else UNKNOWN
        return Secret(inner) if struct.fields["secret"].bool_value else inner
    raise ValueError(f"a value with signature {signature} (asset, archive or resource): these stand-ins take none")


def _to_value(value: Any) -> struct_pb2.Value:
    if isinstance(value, Secret):
        return _to_value({_SIGNATURE: _SECRET, "value": value.value})
    if isinstance(value, Mapping):
        return struct_pb2.Value(struct_value=to_struct(value))
    if isinstance(value, list | tuple):
        return struct_pb2.Value(list_value=struct_pb2.ListValue(values=[_to_value(item) for item in value]))
    return _to_scalar(value)


def _to_scalar(value: Any) -> struct_pb2.Value:
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NullValue.NULL_VALUE)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, int | float):
        return struct_pb2.Value(number_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    raise TypeError(f"{type(value).__name__} {value!r} is no property value")
