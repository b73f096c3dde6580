"""A Helm release through its life, as the real provider leads it, from a chart on disk.

A first install that fails is kept as `failed` and goes into the state; the next up upgrades it. An install that
was killed in between is in nobody's state: the next up is refused with helm's "cannot re-use a name", as for
real, and somebody has to `helm uninstall` it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.providers.kubernetes_cluster import Cluster
from tests.e2e.providers.kubernetes_helm import Helm, HelmError, record, resource_names
from tests.e2e.providers.kubernetes_journal import Journal
from tests.e2e.providers.serving import Change, Found, InitFailedError, RefusedError
from tests.e2e.providers.values import UNKNOWN, Properties, differences, is_unknown, opened

TIMEOUT_S = 300
_REPLACES = frozenset({"name", "namespace"})
_TAKEN = frozenset(
    {"name", "chart", "version", "namespace", "createNamespace", "values", "skipCrds", "timeout", "skipAwait",
     "atomic", "cleanupOnFail", "waitForJobs", "description", "compat", "repositoryOpts"}
)  # fmt: skip
"""Arguments that the stand-in knows; `compat` is the SDK's own."""


@dataclass(frozen=True, kw_only=True)
class Releases:
    """Through helm; what became of a release is read from helm's own records."""

    cluster: Cluster
    helm: Helm
    journal: Journal

    def create(self, inputs: Properties) -> tuple[str, Mapping[str, Any]]:
        """helm install; what it leaves when it fails is kept, marked as half made."""
        given = opened(inputs)
        what = _identifier(given)
        try:
            with self.journal.recorded("helm", "install", what):
                self.helm.run(*_install(given), values=given.get("values") or {})
        except HelmError as error:
            outputs = self._outputs(inputs)
            if outputs is None or _is_taken(error):
                raise
            raise InitFailedError(
                what,
                outputs,
                f"Helm release {what!r} was created, but failed to initialize completely: {error}",
            ) from None
        return what, self._made(inputs)

    def update(self, inputs: Properties) -> Mapping[str, Any]:
        """helm upgrade; a failed one leaves the release as helm left it."""
        given = opened(inputs)
        what = _identifier(given)
        try:
            with self.journal.recorded("helm", "upgrade", what):
                self.helm.run(*_upgrade(given), values=given.get("values") or {})
        except HelmError as error:
            outputs = self._outputs(inputs)
            if outputs is None:
                raise
            raise InitFailedError(
                what, outputs, f"Helm release {what!r} failed to initialize completely: {error}"
            ) from None
        return self._made(inputs)

    def read(self, identifier: str, inputs: Properties) -> Found | None:
        """The release as it is; None when it was removed by hand."""
        if not inputs:
            raise RefusedError(f"helm release {identifier}: the stand-in imports none")
        outputs = self._outputs(inputs)
        if outputs is None:
            return None
        seen = {key: value for key, value in inputs.items() if key != "values"}
        if outputs["values"] or "values" in inputs:
            seen["values"] = outputs["values"]
        return Found(identifier=identifier, inputs=seen, outputs=outputs)

    def delete(self, old: Found) -> None:
        """helm uninstall; it waits for what the release holds, unless it was never awaited."""
        given = opened(old.inputs)
        what = _identifier(given)
        with self.journal.recorded("helm", "uninstall", what):
            self.helm.run("uninstall", given["name"], "--namespace", given["namespace"], *_waiting(given))

    def _made(self, inputs: Properties) -> Mapping[str, Any]:
        outputs = self._outputs(inputs)
        if outputs is None:
            raise RefusedError(f"helm release {_identifier(opened(inputs))}: gone as soon as it was made")
        return outputs

    def _outputs(self, inputs: Properties) -> dict[str, Any] | None:
        given = opened(inputs)
        found = record(self.cluster, given["namespace"], given["name"])
        if found is None:
            return None
        described = found["chart"]["metadata"]
        status = {
            "name": found["name"],
            "namespace": found["namespace"],
            "revision": found["version"],
            "status": found["info"]["status"],
            "chart": described["name"],
            "version": described["version"],
            "appVersion": described.get("appVersion", ""),
        }
        return {
            **inputs,
            "values": found.get("config") or {},
            "version": described["version"],
            "status": status,
            "resourceNames": resource_names(found.get("manifest") or ""),
        }


def checked(inputs: Properties, *, namespace: str, name: str) -> tuple[Properties, dict[str, str]]:
    """Inputs with what the real provider fills in, and what is wrong with them, by property."""
    filled = {key: value for key, value in inputs.items() if value is not None}
    filled["name"] = filled.get("name") or name
    filled["namespace"] = filled.get("namespace") or namespace
    if filled.get("skipAwait") is not True:
        filled.setdefault("timeout", TIMEOUT_S)
    failures = {
        key: f"the stand-in's helm.v3.Release takes no {key}; see kubernetes_releases"
        for key in sorted(filled.keys() - _TAKEN)
    }
    if not is_unknown(filled.get("chart")) and (refused := _chart_refused(filled)):
        failures["chart"] = refused
    return filled, failures


def changed(old: Found, new: Properties) -> Change:
    """Name and namespace make another release; all else is an upgrade, values that somebody else changed included."""
    before, after = opened(old.inputs), opened(new)
    paths = dict(differences(before, after))
    live = {"values": _common(opened(old.outputs).get("values"), after.get("values") or {})}
    paths.update(differences(live, {"values": after.get("values") or {}}))
    return Change(paths=paths, replaces=frozenset(paths) & _REPLACES)


def previewed(inputs: Properties) -> Mapping[str, Any]:
    """As the real one: the inputs, and nothing known of what the chart makes."""
    return {**inputs, "status": UNKNOWN, "resourceNames": UNKNOWN}


def _chart_refused(inputs: Properties) -> str | None:
    chart = opened(inputs.get("chart"))
    if not chart:
        return "the release names no chart"
    if str(chart).startswith("oci://") or inputs.get("repositoryOpts"):
        return f"{chart}: the stand-in has no network; set topolab:charts to a folder that holds the chart by its name"
    description = Path(chart) / "Chart.yaml"
    if not description.is_file():
        return f"{chart}: no chart there (Chart.yaml is missing)"
    version = opened(inputs.get("version"))
    found = yaml.safe_load(description.read_text()).get("version")
    if version and not is_unknown(version) and str(version).removeprefix("v") != str(found).removeprefix("v"):
        return f"{chart}: version {version} is asked for, {found} is there"
    return None


def _install(given: Properties) -> list[str]:
    flags = [*_common_flags("install", given)]
    if given.get("createNamespace"):
        flags.append("--create-namespace")
    if given.get("skipCrds"):
        flags.append("--skip-crds")
    return flags


def _upgrade(given: Properties) -> list[str]:
    flags = [*_common_flags("upgrade", given), "--history-max", "0"]
    if given.get("cleanupOnFail"):
        flags.append("--cleanup-on-fail")
    return flags


def _common_flags(verb: str, given: Properties) -> list[str]:
    flags = [verb, given["name"], given["chart"], "--namespace", given["namespace"], *_waiting(given)]
    if given.get("atomic"):
        flags.append("--atomic")
    if given.get("waitForJobs") and not given.get("skipAwait"):
        flags.append("--wait-for-jobs")
    if given.get("description"):
        flags += ["--description", given["description"]]
    return flags


def _waiting(given: Properties) -> list[str]:
    timeout = ["--timeout", f"{given.get('timeout', TIMEOUT_S):g}s"]
    return timeout if given.get("skipAwait") and not given.get("atomic") else ["--wait", *timeout]


def _common(live: Any, wanted: Any) -> Any:
    if isinstance(live, Mapping) and isinstance(wanted, Mapping):
        return {key: _common(live[key], item) for key, item in wanted.items() if key in live}
    return live


def _is_taken(error: HelmError) -> bool:
    return "cannot re-use a name" in str(error)


def _identifier(given: Properties) -> str:
    return f"{given['namespace']}/{given['name']}"
