"""One object of the cluster through its life, as the real provider leads it: create, update, read, delete."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.e2e.providers import kubernetes_kinds as kinds
from tests.e2e.providers.kubernetes_cluster import (
    ApiError,
    Cluster,
    Document,
    NoSuchKindError,
    UnreachableError,
)
from tests.e2e.providers.kubernetes_journal import Journal
from tests.e2e.providers.kubernetes_shape import (
    FIELD_MANAGER,
    bare,
    handed_over,
    is_created_by_us,
    live_of,
    seen,
    state,
)
from tests.e2e.providers.kubernetes_waits import ASKED_S, VOLUME_S, conditions
from tests.e2e.providers.serving import Found, InitFailedError, RefusedError
from tests.e2e.providers.values import Properties, is_unknown

DELETION_S = 600.0
"""As the real provider's (pkg/await/await.go)."""
_LOOK_EVERY_S = 0.2
_GONE = 404
_PREVIEW_FORGIVES = frozenset({"Forbidden", "AlreadyExists"})

Tell = Callable[[str], None]
Made = tuple[str, Mapping[str, Any]]
"""Identifier and outputs."""


@dataclass(frozen=True, kw_only=True)
class Objects:
    """`upsert`, `force`: the provider's settings upsertExistingObjects and enablePatchForce.

    `retries_s`: pauses of a create whose namespace or CRD isn't there yet (pkg/retry: 5 times, doubling).
    """

    cluster: Cluster
    journal: Journal
    upsert: bool
    force: bool
    retries_s: tuple[float, ...] = (1, 2, 4, 8, 16)

    def create(
        self, inputs: Properties, manager: str, *, timeout_s: float, tell: Tell
    ) -> tuple[str, Mapping[str, Any]]:
        """A new object; one that is there already is refused unless `upsert`."""
        document = bare(inputs)
        what = kinds.subject(document)
        try:
            with self.journal.recorded("kubernetes", "apply", what):
                live = self._made(document, manager)
        except NoSuchKindError:
            raise
        except ApiError as error:
            raise RefusedError(
                f"resource {what} was not successfully created by the Kubernetes API server: {error}"
            ) from None
        return self._settled(document, live, manager, timeout_s, tell)

    def update(self, old: Found, inputs: Properties, *, timeout_s: float, tell: Tell) -> Mapping[str, Any]:
        """Server-side apply onto the object that is there."""
        document, manager = bare(inputs), str(old.outputs[FIELD_MANAGER])
        what = kinds.subject(document)
        try:
            with self.journal.recorded("kubernetes", "apply", what):
                self._take_over(self.cluster.get(document), manager)
                live = self.cluster.apply(document, manager, force=self._forced(document))
        except ApiError as error:
            raise RefusedError(f"update of resource {what} failed: {_conflict(error, manager)}{error}") from None
        return self._settled(document, live, manager, timeout_s, tell)[1]

    def previewed(self, inputs: Properties, old: Found | None) -> Mapping[str, Any]:
        """A dry run; the inputs alone where they hold unknowns or the namespace or CRD isn't there yet."""
        if is_unknown(inputs):
            return inputs
        document = bare(inputs)
        try:
            live = self._rehearsed(document, old)
        except (NoSuchKindError, UnreachableError):
            return inputs
        except ApiError as error:
            if error.reason in _PREVIEW_FORGIVES or (old is None and error.status == _GONE):
                return inputs
            verb = "created" if old is None else "updated"
            raise RefusedError(
                f"resource {kinds.subject(document)} can't be {verb}, says a dry run on the Kubernetes API server: "
                f"{error}"
            ) from None
        return {key: value for key, value in state(live, "").items() if key not in {"status", FIELD_MANAGER}}

    def read(self, identifier: str, inputs: Properties, outputs: Properties, api: tuple[str, str]) -> Found | None:
        """The live object and the inputs as it has them; None when it, or its kind, is gone."""
        document = bare(inputs) if inputs else _by_identifier(identifier, api)
        try:
            live = self.cluster.get(document)
        except NoSuchKindError:
            return None
        except ApiError as error:
            if error.status == _GONE:
                return None
            raise
        shape = inputs or {key: value for key, value in live.items() if key != "status"}
        manager = str(outputs.get(FIELD_MANAGER) or "pulumi-kubernetes-imported")
        return Found(identifier=identifier, inputs=seen(live, shape), outputs=state(live, manager))

    def delete(self, old: Found, *, timeout_s: float, tell: Tell) -> None:
        """Asks for the deletion and waits until the object is gone, finalizers and all.

        An object whose CRD is gone counts as deleted, as for the real provider; the log says so.
        """
        document = live_of(old.outputs) if "metadata" in old.outputs else bare(old.inputs)
        what = kinds.subject(document)
        began = time.monotonic()
        with self.journal.recorded("kubernetes", "delete", what):
            known = self._ask_to_delete(document)
        with self.journal.recorded("kubernetes", "deleted", what) as details:
            if not known:
                details["kind"] = "gone"
                return
            limit_s = kinds.limit_s(document, timeout_s, DELETION_S)
            if not (document["kind"] == "Namespace" and kinds.annotation(document, kinds.SKIP_AWAIT) == "true"):
                self._await_end(document, limit_s, tell)
            details["seconds"] = round(time.monotonic() - began, 1)

    def _made(self, document: Document, manager: str) -> Document:
        for pause_s in (*self.retries_s, None):
            try:
                if self.upsert:
                    return self.cluster.apply(document, manager, force=self._forced(document))
                return self.cluster.create(document)
            except (NoSuchKindError, ApiError) as error:
                missing = isinstance(error, NoSuchKindError) or error.status == _GONE
                if not missing or pause_s is None or self.journal.stopping.wait(pause_s):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _rehearsed(self, document: Document, old: Found | None) -> Document:
        if old is not None:
            # A create's fields are handed over only by a real update, so a dry run must force its way.
            created = is_created_by_us(self.cluster.get(document)["metadata"].get("managedFields") or [])
            force = created or self._forced(document)
            return self.cluster.apply(document, str(old.outputs[FIELD_MANAGER]), force=force, dry_run=True)
        if self.upsert:
            return self.cluster.apply(document, "pulumi-kubernetes-preview", force=True, dry_run=True)
        return self.cluster.create(document, dry_run=True)

    def _forced(self, document: Document) -> bool:
        return self.force or kinds.annotation(document, kinds.PATCH_FORCE) == "true"

    def _take_over(self, live: Document, manager: str) -> None:
        fields = handed_over(live["metadata"].get("managedFields") or [], manager)
        if fields is not None:
            self.cluster.replace_managed_fields(live, fields)

    def _settled(self, document: Document, live: Document, manager: str, timeout_s: float, tell: Tell) -> Made:
        what = kinds.subject(document)
        wanted = conditions(document, self._binding_mode)
        limit_s = kinds.limit_s(
            document, timeout_s, ASKED_S if kinds.annotation(document, kinds.WAIT_FOR) else VOLUME_S
        )
        give_up = time.monotonic() + limit_s
        while missing := next(filter(None, (holds(live) for holds in wanted)), None):
            tell(f"waiting for {what}: {missing}")
            if time.monotonic() > give_up or self.journal.stopping.wait(_LOOK_EVERY_S):
                raise InitFailedError(
                    identifier(live),
                    state(live, manager),
                    f"resource {what} was made, but isn't ready after {limit_s:g} s: {missing}",
                )
            live = self._looked_at(document) or live
        return identifier(live), state(live, manager)

    def _binding_mode(self, storage_class: str) -> str | None:
        try:
            found = self.cluster.get(
                {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": storage_class}}
            )
        except ApiError:
            return None
        mode: str | None = found.get("volumeBindingMode")
        return mode

    def _looked_at(self, document: Document) -> Document | None:
        try:
            return self.cluster.get(document)
        except UnreachableError:
            return None

    def _ask_to_delete(self, document: Document) -> bool:
        """False: the kind is gone."""
        try:
            self.cluster.delete(document, kinds.propagation(document))
        except NoSuchKindError:
            return False
        except ApiError as error:
            if error.status != _GONE:
                raise RefusedError(f"deletion of {kinds.subject(document)} was refused: {error}") from None
            self.cluster.forget(document["apiVersion"], document["kind"])
            return self._is_served(document)
        return True

    def _is_served(self, document: Document) -> bool:
        try:
            self.cluster.endpoint(document["apiVersion"], document["kind"])
        except NoSuchKindError:
            return False
        return True

    def _await_end(self, document: Document, limit_s: float, tell: Tell) -> None:
        give_up = time.monotonic() + limit_s
        uids: set[str] = set()
        held = "the API server doesn't answer"
        while True:
            try:
                live = self.cluster.get(document)
            except UnreachableError:
                pass
            except ApiError as error:
                if error.status == _GONE:
                    return
                raise
            else:
                uids.add(live["metadata"]["uid"])
                held = _holding(live)
            if len(uids) > 1:
                return
            tell(f"waiting for {kinds.subject(document)} to be gone: {held}")
            if time.monotonic() > give_up or self.journal.stopping.wait(_LOOK_EVERY_S):
                raise RefusedError(
                    f"{kinds.subject(document)} is still there {limit_s:g} s after its deletion was asked for: {held}"
                )


def identifier(live: Document) -> str:
    """namespace/name, or the name of an object without a namespace."""
    metadata = live["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def _by_identifier(text: str, api: tuple[str, str]) -> Document:
    namespace, _, name = text.rpartition("/")
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api[0], "kind": api[1], "metadata": metadata}


def _holding(live: Document) -> str:
    """What keeps an object that is being deleted."""
    finalizers = [*(live["metadata"].get("finalizers") or []), *((live.get("spec") or {}).get("finalizers") or [])]
    said = [
        str(condition.get("message"))
        for condition in (live.get("status") or {}).get("conditions") or []
        if live["kind"] == "Namespace" and condition.get("status") == "True"
    ]
    names = f"finalizers {', '.join(finalizers)}" if finalizers else "no finalizer holds it"
    return "; ".join((names, *said))


def _conflict(error: ApiError, manager: str) -> str:
    if error.reason != "Conflict":
        return ""
    return f"Server-Side Apply field conflict detected (field manager {manager}): "
