"""Helm releases of the catalogue's charts, from their registries or from a folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from infra.component import Component
from workloads.catalogue.versions import Chart

READY_S = 600
"""Helm's own limit of 300 s is short where an image of a controller is pulled by a fresh node."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """One chart in the cluster under its own name. `values` are the chart's, late-bound ones among them."""

    name: str
    chart: Chart
    namespace: str
    values: Mapping[str, Any]
    create_namespace: bool = False
    skip_crds: bool = False


def install(
    parent: Component,
    release: Release,
    *,
    folder: Path | None,
    depends_on: Sequence[pulumi.Resource],
) -> kubernetes.helm.v3.Release:
    """The release; `folder` holds the charts by name where no registry is asked (None: registries)."""
    chart = release.chart
    local = None if folder is None else str(folder / chart.name.rsplit("/", 1)[-1])
    repository = chart.repository if local is None else None
    return kubernetes.helm.v3.Release(
        release.name,
        name=release.name,
        chart=local or chart.name,
        version=chart.version if local is None else None,
        repository_opts=None if repository is None else kubernetes.helm.v3.RepositoryOptsArgs(repo=repository),
        namespace=release.namespace,
        create_namespace=release.create_namespace,
        skip_crds=release.skip_crds,
        values=dict(release.values),
        timeout=READY_S,
        opts=parent.child(depends_on=list(depends_on)),
    )
