"""Documents as YAML, for people and for `kubectl apply --server-side`.

Server-side, because the other way keeps a copy in an annotation, and the code's ConfigMap exceeds its 256 KiB.
"""

from collections.abc import Iterable

import yaml

from workloads.rendering.bindings import Document


def to_yaml(documents: Iterable[Document]) -> str:
    """All documents in one stream, keys in their own order, texts of several lines as blocks."""
    return "".join(f"---\n{_dump(document)}" for document in documents)


class _Dumper(yaml.SafeDumper):
    """SafeDumper that repeats an equal value instead of pointing to it: anchors are hard to read."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  # the base class fixes the signature
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def _dump(document: Document) -> str:
    # No line is folded: a long value stays on one line, so a diff shows what changed.
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=1_000_000, allow_unicode=True)
    return text
