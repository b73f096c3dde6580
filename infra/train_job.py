"""The namespace of the runs, and the stack's run in it."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as kubernetes

from infra.component import Component
from infra.placing import of_kinds, place
from workloads.planning.plan import NAMESPACE, Plan
from workloads.rendering.bindings import HF_TOKEN_KEY, Bindings, Document
from workloads.rendering.manifests import platform_documents, topology_documents
from workloads.rendering.stopping import grace_s

FINALIZERS_S = 480
"""What JobSet's and Trainer's own finalizers may take once the pods have ended."""


@dataclass(frozen=True, kw_only=True)
class TrainJobArgs:
    """`bindings`: complete. `hf_token`: a secret, placed only where the plan needs it.

    `operator`: Trainer's release. `needs`: pool, plugins, storage driver and rights that the pods stand on.
    """

    plan: Plan
    bindings: Bindings
    hf_token: pulumi.Output[str] | None
    operator: pulumi.Resource
    needs: Sequence[pulumi.Resource]


class TrainJob(Component):
    """Namespace and its policy, volumes, configuration, runtime and job. `pulumi up` ends when the job is accepted."""

    TYPE = "topolab:infra:TrainJob"
    name: str

    def __init__(self, name: str, args: TrainJobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        self._args = args
        platform = platform_documents(args.plan, args.bindings)
        topology = topology_documents(args.plan, args.bindings)
        (space,) = of_kinds(platform, "Namespace")
        # The runs' namespace ends with its pods, and those with the nodes that hold them.
        self._namespace = place("namespace", space, self.child(depends_on=list(args.needs)))
        inside = [
            *self._policy(of_kinds(platform, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")),
            *self._in_namespace(of_kinds(platform, "ServiceAccount")),
            *self._volumes(of_kinds(platform, "PersistentVolume", "PersistentVolumeClaim")),
            *self._in_namespace(of_kinds(topology, "ConfigMap")),
            *self._secret(),
        ]
        (runtime,) = of_kinds(topology, "ClusterTrainingRuntime")
        # Its kind is in Trainer's chart.
        placed = place("runtime", runtime, self.child(depends_on=[args.operator]))
        (job,) = of_kinds(topology, "TrainJob")
        # Trainer's webhook wants the runtime to be there; pods want their files, volumes and rights.
        self._job(job, made_of=[*of_kinds(topology, "ConfigMap"), runtime], after=[placed, *inside])
        self.name = args.plan.job_name
        self.register_outputs({"name": self.name, "namespace": NAMESPACE})

    def _policy(self, documents: list[Document]) -> list[pulumi.Resource]:
        policy, binding = documents
        held = place("pod-policy", policy, self.child())
        # The binding names its policy as plain text.
        return [held, place("pod-policy-binding", binding, self.child(depends_on=[held]))]

    def _in_namespace(self, documents: list[Document]) -> list[pulumi.Resource]:
        # The namespace stands in these as plain text.
        opts = self.child(depends_on=[self._namespace])
        return [place(_role(document, self._args.plan), document, opts) for document in documents]

    def _volumes(self, documents: list[Document]) -> list[pulumi.Resource]:
        # Claims name their volume as plain text; a mounted one holds both.
        placed: list[pulumi.Resource] = []
        for document in documents:
            opts = self.child(depends_on=[self._namespace, *placed])
            placed.append(place(_role(document, self._args.plan), document, opts))
        return placed

    def _secret(self) -> list[pulumi.Resource]:
        name = self._args.bindings.hf_token_secret
        assert isinstance(name, str), "made here, so it is known"
        if not self._args.plan.needs_hf_token or self._args.hf_token is None:
            return []
        return [
            kubernetes.core.v1.Secret(
                "hf-token",
                metadata={"name": name, "namespace": NAMESPACE},
                string_data={HF_TOKEN_KEY: self._args.hf_token},
                # The namespace stands in it as plain text.
                opts=self.child(depends_on=[self._namespace]),
            )
        ]

    def _job(self, document: Document, *, made_of: Sequence[Document], after: Sequence[pulumi.Resource]) -> None:
        own = pulumi.ResourceOptions(
            # Trainer lets nothing of a running job change.
            replace_on_changes=["spec"],
            # What a run is made of stands in its files too: another config is another run.
            replacement_trigger=_digest(made_of),
            # Two at once would not fit the pool.
            delete_before_replace=True,
        )
        # The pods end within their grace.
        stop = f"{grace_s(self._args.plan) + FINALIZERS_S}s"
        opts = self.child(depends_on=list(after), delete_timeout=stop)
        place("train-job", document, pulumi.ResourceOptions.merge(opts, own))


def _role(document: Document, plan: Plan) -> str:
    """A name in Pulumi's state that stays when the topology changes, so that the object is replaced."""
    name = str(document["metadata"]["name"]).removeprefix(f"{plan.topology.name}-")
    return f"{document['kind'].lower()}-{name}"


def _digest(documents: Sequence[Document]) -> str:
    return hashlib.sha256(json.dumps(documents, sort_keys=True).encode()).hexdigest()
