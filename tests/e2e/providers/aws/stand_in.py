"""The provider itself: checks, differences and outputs for any row of the table."""

import importlib.metadata
import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tests.e2e.providers.aws.cloud import Cloud, PendingError, refusing, sentence
from tests.e2e.providers.aws.kinds import Kind, as_asked, checked, same, settled
from tests.e2e.providers.aws.questions import QUESTIONS
from tests.e2e.providers.aws.table import KINDS
from tests.e2e.providers.serving import Change, Checked, Found, InitFailedError, RefusedError, Resource, StandIn
from tests.e2e.providers.values import Properties, Secret, differences, is_unknown
from tests.e2e.site import Site

_CONFIG = frozenset(
    {
        "allowedAccountIds",
        "defaultTags",
        "profile",
        "region",
        "skipCredentialsValidation",
        "skipRegionValidation",
        "version",
    }
)
UNFINISHED = "__unfinished"
"""In the outputs of what was made and isn't as asked yet; the next update finishes it."""


class Aws(StandIn):
    """pulumi-aws, for the types that the program and pulumi-eks use."""

    NAME = "aws"

    def __init__(self, site: Site) -> None:
        super().__init__(importlib.metadata.version("pulumi-aws"))
        self._site = site
        self._cloud: Cloud | None = None
        self._default_tags: dict[str, str] = {}

    @property
    def cloud(self) -> Cloud:
        """The account; the engine configures before it asks."""
        assert self._cloud is not None, "the engine configures first"
        return self._cloud

    def check_config(self, inputs: Properties) -> Checked:
        failures = {
            name: f"the stand-in of aws knows no provider argument {name!r}; it knows {', '.join(sorted(_CONFIG))}"
            for name in inputs
            if name not in _CONFIG and not name.startswith("__")
        }
        return Checked(inputs=inputs, failures=failures)

    def diff_config(self, old: Properties, new: Properties) -> Change:
        paths = dict(differences(old, new))
        # Another region holds none of the old one's objects.
        return Change(paths=paths, replaces=frozenset(paths) & {"region"})

    def configure(self, config: Properties) -> None:
        self._cloud = Cloud(self._site, region=config.get("region"), profile=config.get("profile"))
        self._cloud.stopping = self.stopping
        self._default_tags = json.loads(config.get("defaultTags") or "{}").get("tags") or {}
        allowed = json.loads(config.get("allowedAccountIds") or "[]")
        if allowed:
            self._refuse_others(allowed)

    def check(self, resource: Resource, old: Properties, new: Properties, random_seed: bytes) -> Checked:
        kind = _kind(resource)
        if kind.tagged and self._default_tags and not is_unknown(new.get("tags")):
            # As the real provider: the state's tags hold the default ones, the resource's own win.
            new = {**new, "tags": {**self._default_tags, **(new.get("tags") or {})}}
        return checked(kind, resource, old, new, random_seed)

    def diff(self, resource: Resource, old: Found, new: Properties) -> Change:
        kind = _kind(resource)
        paths: dict[str, Any] = {}
        for key in sorted({*old.inputs, *new}):
            if not key.startswith("__") and not same(old.inputs.get(key), new.get(key)):
                before = {key: old.inputs[key]} if key in old.inputs else {}
                paths |= dict(differences(before, {key: new[key]} if key in new else {}))
        replaces = frozenset(path for path in paths if _within(path, kind.REPLACE))
        kept_name = kind.NAME is not None and old.inputs.get(kind.NAME) == new.get(kind.NAME)
        return Change(paths=paths, replaces=replaces, delete_before_replace=bool(replaces) and kept_name)

    def create(self, resource: Resource, inputs: Properties, *, timeout_s: float) -> tuple[str, Mapping[str, Any]]:
        kind = _kind(resource)
        with refusing("creating", resource):
            identifier = kind.make(self.cloud, inputs)
        return identifier, self._finished("creating", resource, identifier, inputs, timeout_s)

    def previewed(self, resource: Resource, inputs: Properties, old: Found | None) -> Mapping[str, Any]:
        if old is None:
            return {**inputs, **_kind(resource).unknown_outputs(inputs)}
        return {**old.outputs, **inputs}

    def read(self, resource: Resource, identifier: str, inputs: Properties, outputs: Properties) -> Found | None:
        kind = _kind(resource)
        with refusing("reading", resource):
            live = kind.live(self.cloud, identifier)
        if live is None:
            return None
        asked = inputs or {name: live[name] for name in kind.INPUTS if name in live}
        shown = as_asked(kind, asked, live)
        return Found(identifier=identifier, inputs=shown, outputs={**outputs, **shown, **_shown(shown, live)})

    def update(self, resource: Resource, old: Found, inputs: Properties, *, timeout_s: float) -> Mapping[str, Any]:
        kind = _kind(resource)
        if not same(_plain(old.inputs), _plain(inputs)):
            with refusing("updating", resource):
                kind.change(self.cloud, old.identifier, dict(old.inputs), inputs)
        return self._finished("updating", resource, old.identifier, inputs, timeout_s)

    def delete(self, resource: Resource, old: Found, *, timeout_s: float) -> None:
        kind, free_s = _kind(resource), timeout_s or self.cloud.waits.freed_s
        with refusing("deleting", resource):
            kind.remove(self.cloud, old.identifier, dict(old.inputs), dict(old.outputs), free_s)

    def invoke(self, token: str, arguments: Properties) -> Mapping[str, Any]:
        if token not in QUESTIONS:
            raise RefusedError(f"the stand-in of aws has no answer to {token}; it answers {', '.join(QUESTIONS)}")
        try:
            return QUESTIONS[token](self.cloud, arguments)
        except (ClientError, BotoCoreError) as error:
            raise RefusedError(f"{token}: {error}") from error

    def _finished(
        self, verb: str, resource: Resource, identifier: str, inputs: Properties, timeout_s: float
    ) -> Mapping[str, Any]:
        kind = _kind(resource)
        try:
            kind.finish(self.cloud, identifier, inputs, timeout_s or self.cloud.waits.ready_s)
            live = kind.live(self.cloud, identifier)
        except (ClientError, BotoCoreError, PendingError) as error:
            raise InitFailedError(identifier, {**inputs, UNFINISHED: True}, sentence(verb, resource, error)) from error
        if live is None:
            raise RefusedError(f"{verb} {resource.type} ({resource.name}): {identifier} is gone as soon as it was made")
        return {**inputs, **_shown(inputs, live)}

    def _refuse_others(self, allowed: list[str]) -> None:
        try:
            account = self.cloud.account
        except (ClientError, BotoCoreError) as error:
            raise RefusedError(f"validating provider credentials: {error}") from error
        if account not in allowed:
            raise RefusedError(f"AWS account ID not allowed: {account} (allowedAccountIds: {', '.join(allowed)})")


def _kind(resource: Resource) -> Kind:
    if resource.type not in KINDS:
        raise RefusedError(f"the stand-in of aws has no resource type {resource.type}; add a row to its table")
    return KINDS[resource.type]


def _within(path: str, roots: tuple[str, ...]) -> bool:
    return any(path == root or path.startswith((f"{root}.", f"{root}[")) for root in roots)


def _plain(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in inputs.items() if not key.startswith("__")}


def _shown(inputs: Mapping[str, Any], live: Properties) -> Properties:
    """Outputs: what is live, in the inputs' words where they say the same; objects also with what AWS added."""
    outputs: Properties = {}
    for name, value in live.items():
        asked = inputs.get(name)
        if isinstance(asked, Mapping) and isinstance(value, Mapping) and name != "tags":
            outputs[name] = {**value, **settled(asked, value)}
        else:
            outputs[name] = settled(asked, value)
    if "tags" in live:
        # The engine marks again what was secret in an input of the same name, and there is none of this one.
        outputs["tagsAll"] = Secret(live["tags"])
    return outputs
