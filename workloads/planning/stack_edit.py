"""One value of a stack file's text replaced, everything else left as its author wrote it. Pure."""

from collections.abc import Mapping
from typing import Any

import yaml

from workloads.planning.stack_file import PREFIX

_PLATFORM = f"{PREFIX}platform"


def with_platform(text: str, values: Mapping[str, Any], where: str) -> str:
    """The file with these keys of `topolab:platform`; comments and the order of keys stay.

    ValueError where the text can't be changed so that nothing else of it changes; `where` says which file.
    """
    changed = text
    for key, value in values.items():
        changed = _with_key(changed, key, value, where)
    if not _is(changed, _expected(yaml.safe_load(text), values)):
        raise _by_hand(values, where)
    return changed


def _is(text: str, expected: Any) -> bool:
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return False
    return bool(found == expected)


def _expected(document: Any, values: Mapping[str, Any]) -> Any:
    config = document["config"]
    platform = {**(config.get(_PLATFORM) or {}), **values}
    return {**document, "config": {**config, _PLATFORM: platform}}


def _with_key(text: str, key: str, value: Any, where: str) -> str:
    config = _child(yaml.compose(text, Loader=yaml.SafeLoader), "config")
    if not isinstance(config, yaml.MappingNode) or config.flow_style or not config.value:
        raise _by_hand({key: value}, where)
    platform = _child(config, _PLATFORM)
    indent = " " * config.start_mark.column
    if platform is None:
        return _inserted(text, _end(config), f"\n{indent}{_PLATFORM}: {_flow({key: value})}")
    if not isinstance(platform, yaml.MappingNode) or not platform.value:
        raise _by_hand({key: value}, where)
    old = _child(platform, key)
    if old is not None:
        return _replaced(text, old, _flow(value))
    if platform.flow_style:
        return _inserted(text, _end(platform.value[-1][1]), f", {key}: {_flow(value)}")
    own = " " * platform.start_mark.column
    return _inserted(text, platform.start_mark.index, f"{key}: {_flow(value)}\n{own}")


def _replaced(text: str, old: yaml.Node, flow: str) -> str:
    """Of a block value the first line's indentation goes too, so that the new value stands beside its key."""
    start, end = old.start_mark.index, _end(old)
    if isinstance(old, yaml.CollectionNode) and not old.flow_style:
        colon = text.rindex(":", 0, start)
        return f"{text[: colon + 1]} {flow}{text[end:]}"
    return text[:start] + flow + text[end:]


def _inserted(text: str, index: int, what: str) -> str:
    return text[:index] + what + text[index:]


def _end(node: yaml.Node) -> int:
    """Where the last character of it is; a block's own mark lies behind the comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if name.value == key), None)


def _flow(value: Any) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000)
    return text.strip().removesuffix("...").strip()


def _by_hand(values: Mapping[str, Any], where: str) -> ValueError:
    keys = ", ".join(f"platform.{key}: {_flow(value)}" for key, value in values.items())
    return ValueError(f"{where}: its layout can't be changed without loss; write {keys} by hand")
