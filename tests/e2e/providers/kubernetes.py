"""Stand-in for pulumi-kubernetes 4.34: the objects and Helm releases of the program, in a real API server.

DIFFERENCES lists what it does otherwise than the real provider.
"""

import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, ClassVar

from tests.e2e.providers import kubernetes_config as config
from tests.e2e.providers import kubernetes_kinds as kinds
from tests.e2e.providers import kubernetes_releases as releases
from tests.e2e.providers.kubernetes_cluster import PATIENCE_S, Cluster, NoSuchKindError, UnreachableError
from tests.e2e.providers.kubernetes_helm import Helm
from tests.e2e.providers.kubernetes_journal import Journal
from tests.e2e.providers.kubernetes_objects import Objects
from tests.e2e.providers.kubernetes_releases import Releases
from tests.e2e.providers.kubernetes_shape import bare, kept, live_of, seen
from tests.e2e.providers.serving import Change, Checked, Found, RefusedError, Resource, StandIn, serve
from tests.e2e.providers.values import Properties, differences, is_unknown, opened
from tests.e2e.site import Site, ambient

DIFFERENCES = {
    "kinds": "the built-in kinds of the program, custom resources and helm.v3.Release; any other is refused",
    "applying": "creates by POST and updates by server-side apply, as the real one; client-side apply is refused",
    "schema": "no check against the OpenAPI schema before the call: the API server's own answer is what counts",
    "conflicts": "fields of kubectl and of our own create are handed over at an update; others conflict",
    "replacing": "the real one's table, cut to the kinds known",
    "awaiting": "polls where the real one watches; JSONPath without filters and wildcards; no PULUMI_K8S_AWAIT_ALL",
    "connection": f"refused connections are tried again for PULUMI_K8S_CLIENT_TIMEOUT ({PATIENCE_S:g}) seconds",
    "credentials": "token or client certificate; no credential plugin (aws eks get-token)",
    "charts": "a folder on disk; oci:// and repositories are refused; helm is a process, killed with the provider",
    "imports": "objects by their identifier; no releases",
    "invokes": "none (yaml, kustomize, helm.template)",
}
"""What is otherwise than in the real provider, by topic; the README's table points here."""

_SETTINGS = frozenset(
    {"kubeconfig", "context", "namespace", "enableServerSideApply", "enableConfigMapMutable", "enableSecretMutable",
     "deleteUnreachable", "upsertExistingObjects", "enablePatchForce"}
)  # fmt: skip
_AMBIENT = {
    "deleteUnreachable": "PULUMI_K8S_DELETE_UNREACHABLE",
    "upsertExistingObjects": "PULUMI_K8S_UPSERT_EXISTING_OBJECTS",
    "enablePatchForce": "PULUMI_K8S_ENABLE_PATCH_FORCE",
    "enableConfigMapMutable": "PULUMI_K8S_ENABLE_CONFIGMAP_MUTABLE",
    "enableSecretMutable": "PULUMI_K8S_ENABLE_SECRET_MUTABLE",
}
"""Variables of the user's shell, for settings that the program leaves out."""
_WAY_OUT = (
    "If the cluster was deleted, you can remove this resource from Pulumi state by rerunning the operation with "
    'the PULUMI_K8S_DELETE_UNREACHABLE environment variable set to "true"'
)


class Kubernetes(StandIn):
    """Objects and releases share what the provider is configured with."""

    NAME: ClassVar[str] = "kubernetes"
    _site: Site
    _settings: Mapping[str, Any]
    _cluster: Cluster
    _objects: Objects
    _releases: Releases

    def check_config(self, inputs: Properties) -> Checked:
        unknown = inputs.keys() - _SETTINGS - {"version"}
        return Checked(
            inputs=inputs,
            failures={key: f"the stand-in kubernetes has no setting {key}" for key in sorted(unknown)},
        )

    def diff_config(self, old: Properties, new: Properties) -> Change:
        """Another cluster replaces the provider and all that it made; other credentials don't."""
        before, after = opened(old), opened(new)
        paths = dict(differences(before, after))
        place = frozenset({"kubeconfig", "context"} & paths.keys())
        if is_unknown(after.get("kubeconfig")) or is_unknown(after.get("context")):
            return Change(paths=paths, replaces=place)
        return Change(paths=paths, replaces=place if _identity(before) != _identity(after) else frozenset())

    def configure(self, config_: Properties) -> None:
        settings = opened(config_)
        if not _flag(settings, "enableServerSideApply", default=True):
            raise RefusedError("provider kubernetes: the stand-in has no client-side apply")
        self._site = Site.of_environment()
        self._settings = settings
        text = settings.get("kubeconfig") or ambient("KUBECONFIG") or "~/.kube/config"
        document = config.parse(text)
        target = config.target(document, settings.get("context"), settings.get("namespace"))
        # Who says that the cluster is gone isn't kept waiting for it.
        patience_s = float(ambient("PULUMI_K8S_CLIENT_TIMEOUT") or PATIENCE_S)
        first_s = 0.0 if self._drops_unreachable else patience_s
        self._cluster = Cluster(target, self.stopping, patience_s=patience_s, first_s=first_s)
        journal = Journal(self._site, self.stopping)
        self._objects = Objects(
            cluster=self._cluster,
            journal=journal,
            upsert=_flag(settings, "upsertExistingObjects"),
            force=_flag(settings, "enablePatchForce"),
        )
        helm = Helm(
            binary=self._site.tools / "helm",
            home=self._site.folder / "helm",
            kubeconfig=config.text(document),
            context=settings.get("context"),
            stopping=self.stopping,
        )
        self._releases = Releases(cluster=self._cluster, helm=helm, journal=journal)

    def check(self, resource: Resource, old: Properties, new: Properties, random_seed: bytes) -> Checked:
        if resource.type == kinds.RELEASE:
            name = opened(old.get("name")) or kinds.autonamed(resource.name, random_seed)
            inputs, failures = releases.checked(new, namespace=self._cluster.target.namespace, name=name)
            return Checked(inputs=inputs, failures=failures)
        kinds.api_of(resource.type)
        inputs = {key: value for key, value in new.items() if value is not None}
        missing = {key: f"{resource.name}: {key} is missing" for key in ("apiVersion", "kind") if not inputs.get(key)}
        inputs["metadata"] = self._metadata(resource, old, inputs, random_seed)
        return Checked(inputs=inputs, failures=missing)

    def diff(self, resource: Resource, old: Found, new: Properties) -> Change:
        if resource.type == kinds.RELEASE:
            return releases.changed(old, new)
        wanted, live = bare(new), live_of(old.outputs)
        if wanted["apiVersion"] == "v1":
            wanted = kept(wanted, live)
        before = seen(live, old.inputs)
        if not self._is_namespaced(wanted):
            before["metadata"].pop("namespace", None)
            wanted["metadata"].pop("namespace", None)
        paths = dict(differences(before, wanted))
        fields = kinds.replacing(
            wanted,
            mutable_config_maps=_flag(self._settings, "enableConfigMapMutable"),
            mutable_secrets=_flag(self._settings, "enableSecretMutable"),
        )
        replaces = kinds.replaced_by(paths, fields)
        same_place = all(wanted["metadata"].get(key) == live["metadata"].get(key) for key in ("name", "namespace"))
        return Change(
            paths=paths,
            replaces=replaces,
            delete_before_replace=bool(replaces) and same_place and kinds.annotation(wanted, kinds.AUTONAMED) != "true",
        )

    def create(self, resource: Resource, inputs: Properties, *, timeout_s: float) -> tuple[str, Mapping[str, Any]]:
        self._cluster.reach()
        if resource.type == kinds.RELEASE:
            return self._releases.create(inputs)
        manager = kinds.autonamed("pulumi-kubernetes", b"")
        return self._objects.create(inputs, manager, timeout_s=timeout_s, tell=self._teller(resource))

    def previewed(self, resource: Resource, inputs: Properties, old: Found | None) -> Mapping[str, Any]:
        if resource.type == kinds.RELEASE:
            return releases.previewed(inputs)
        return self._objects.previewed(inputs, old)

    def read(self, resource: Resource, identifier: str, inputs: Properties, outputs: Properties) -> Found | None:
        try:
            self._cluster.reach()
        except UnreachableError as error:
            if self._drops_unreachable:
                self.tell(resource, f"{error}; deleted from the state, as deleteUnreachable says")
                return None
            raise RefusedError(f"{error}. {_WAY_OUT}") from None
        if resource.type == kinds.RELEASE:
            return self._releases.read(identifier, inputs)
        return self._objects.read(identifier, inputs, outputs, kinds.api_of(resource.type))

    def update(self, resource: Resource, old: Found, inputs: Properties, *, timeout_s: float) -> Mapping[str, Any]:
        self._cluster.reach()
        if resource.type == kinds.RELEASE:
            return self._releases.update(inputs)
        return self._objects.update(old, inputs, timeout_s=timeout_s, tell=self._teller(resource))

    def delete(self, resource: Resource, old: Found, *, timeout_s: float) -> None:
        try:
            self._cluster.reach()
        except UnreachableError as error:
            if resource.type == kinds.RELEASE:
                # As the real one: only a refresh drops a release.
                raise RefusedError(f"can't delete Helm Release with unreachable cluster. {error}") from None
            if self._drops_unreachable:
                self.tell(resource, f"{error}; deleted from the state, as deleteUnreachable says")
                return
            raise RefusedError(f"{error}. {_WAY_OUT}") from None
        if resource.type == kinds.RELEASE:
            self._releases.delete(old)
        else:
            self._objects.delete(old, timeout_s=timeout_s, tell=self._teller(resource))

    def invoke(self, token: str, arguments: Properties) -> Mapping[str, Any]:
        del arguments
        raise RefusedError(f"the stand-in kubernetes answers no {token}")

    @property
    def _drops_unreachable(self) -> bool:
        return _flag(self._settings, "deleteUnreachable")

    def _metadata(self, resource: Resource, old: Properties, new: Properties, random_seed: bytes) -> Properties:
        metadata = dict(opened(new.get("metadata") or {}))
        if metadata.get("generateName"):
            raise RefusedError(f"{resource.name}: .metadata.generateName isn't supported with server-side apply")
        if not metadata.get("name"):
            before = opened(old.get("metadata") or {}).get("name")
            metadata["name"] = before or kinds.autonamed(resource.name, random_seed)
            metadata["annotations"] = {**(metadata.get("annotations") or {}), kinds.AUTONAMED: "true"}
        if not metadata.get("namespace") and self._is_namespaced(new):
            metadata["namespace"] = self._cluster.target.namespace
        return metadata

    def _is_namespaced(self, document: Mapping[str, Any]) -> bool:
        """A kind that isn't known yet is taken to be, as by the real provider, and fitted when it is made."""
        api_version, kind = opened(document.get("apiVersion")), opened(document.get("kind"))
        if api_version == "v1":
            return kind not in kinds.CLUSTER_SCOPED
        try:
            return self._cluster.endpoint(str(api_version), str(kind)).namespaced
        except (NoSuchKindError, UnreachableError):
            return True

    def _teller(self, resource: Resource) -> Callable[[str], None]:
        """Says a thing once, until there is another one to say."""
        said: set[str] = set()

        def tell(message: str) -> None:
            if message not in said:
                said.clear()
                said.add(message)
                self.tell(resource, message)

        return tell


def _identity(settings: Mapping[str, Any]) -> object:
    text = settings.get("kubeconfig")
    return config.identity(config.parse(text), settings.get("context")) if text else None


def _flag(settings: Mapping[str, Any], name: str, *, default: bool = False) -> bool:
    stated = settings.get(name)
    if stated is None and name in _AMBIENT:
        stated = ambient(_AMBIENT[name])
    return default if stated in {None, ""} else stated in {True, "true", "True", "1"}


def main(arguments: list[str]) -> None:
    """Serves the engine."""
    serve(Kubernetes(version("pulumi-kubernetes")), arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
