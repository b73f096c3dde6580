"""Drain guards: two resources that do nothing until `pulumi destroy`, and then look after what no state knows.

**A stable interface.** A destroy runs the code of the checkout with the inputs in the state. So the names of this
module, of its classes and of its inputs stay, inputs are plain, a new input has a default here, and a provider's
instance holds nothing: it is stored as the name of its class. Both providers run in a process of Pulumi's, in the
program's folder; what they print stands among the messages of the command.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi import dynamic

from workloads.operations.leftovers.aws import Aws
from workloads.operations.leftovers.node_claims import node_claims
from workloads.operations.leftovers.ownership import Owner
from workloads.operations.leftovers.patience import Patience
from workloads.operations.leftovers.sweep import await_no_claims, end_nodes, end_orphans, free_interfaces
from workloads.planning.naming import Names

LIMIT_S = 1800
"""A p4d takes EC2 ten minutes and more to end; the network lets its interfaces go some minutes later."""
TIMEOUT = "40m"
"""What the engine is told: longer than the guard's own limit, which ends with a sentence."""

GIVES_UP_CLUSTER = "PULUMI_K8S_DELETE_UNREACHABLE"
"""Pulumi's Kubernetes provider forgets what is in a cluster that it can't reach where this is `true`, no other word."""

Inputs = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Home:
    """Where the guards look: an account, a region, a stack's names. `profile`: as the AWS provider's."""

    names: Names
    account: str
    region: str
    profile: str | None

    @property
    def inputs(self) -> dict[str, pulumi.Input[Any]]:
        """As a guard's state keeps them."""
        return {
            "project": self.names.project,
            "stack": self.names.stack,
            "account": self.account,
            "region": self.region,
            "profile": self.profile,
            "limit_s": LIMIT_S,
        }


class NodesDrained(dynamic.Resource, module="topolab", name="NodesDrained"):
    """Goes after pools and node classes, and before the Karpenter that drains them (guard A)."""

    def __init__(
        self, name: str, home: Home, kubeconfig: pulumi.Input[str], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(DrainProvider(), name, {**home.inputs, "kubeconfig": kubeconfig}, opts)


class InterfacesGone(dynamic.Resource, module="topolab", name="InterfacesGone"):
    """Goes after the cluster, and before the subnets that interfaces of its pods may still hold (guard B)."""

    def __init__(
        self, name: str, home: Home, vpc_id: pulumi.Input[str], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(InterfaceProvider(), name, {**home.inputs, "vpc_id": vpc_id}, opts)


class GuardProvider(dynamic.ResourceProvider):
    """What both share: nothing is made, and an error at the end is a sentence."""

    serialize_as_secret_always = False
    """The stored name of a class is no secret."""
    PLACE = ("project", "stack", "account", "region", "vpc_id")
    """Inputs that say where a guard looks: where one changes, the old place needs its own end."""

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Make nothing."""
        return dynamic.CreateResult(f"{props['project']}/{props['stack']}", props)

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Keep the newer inputs."""
        return dynamic.UpdateResult(news)

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """A guard of another place is another guard."""
        replaces = [key for key in self.PLACE if olds.get(key) != news.get(key)]
        return dynamic.DiffResult(changes=olds != news, replaces=replaces)

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        """Look after what is left; RuntimeError where something can't be removed."""
        try:
            self.guard(props, Patience(limit_s=props["limit_s"], say=_say))
        except ValueError as error:
            # Pulumi's server sends a whole traceback; of an expected end the sentence is all that helps.
            sys.tracebacklimit = 0
            raise RuntimeError(str(error)) from None

    def guard(self, props: Inputs, patience: Patience) -> None:
        """The guard's own work."""
        raise NotImplementedError


class DrainProvider(GuardProvider):
    """Guard A: NodeClaims gone while the controller lives, then whatever it launched."""

    def guard(self, props: Inputs, patience: Patience) -> None:
        """Wait for Karpenter, then sweep behind it."""
        owner, aws = _owner(props), _account(props)
        give_up = os.environ.get(GIVES_UP_CLUSTER) == "true"
        await_no_claims(lambda: node_claims(props["kubeconfig"]), owner, patience, give_up_cluster=give_up)
        end_nodes(aws, owner, patience)


class InterfaceProvider(GuardProvider):
    """Guard B: with the cluster gone, interfaces of its pods, and nodes that a cluster out of reach still launched."""

    def guard(self, props: Inputs, patience: Patience) -> None:
        """Sweep nodes, then what they held."""
        owner, aws = _owner(props), _account(props)
        end_orphans(aws, owner, patience)
        free_interfaces(aws, owner, props["vpc_id"], patience)


def _owner(props: Inputs) -> Owner:
    return Owner(project=props["project"], stack=props["stack"], region=props["region"])


def _account(props: Inputs) -> Aws:
    aws = Aws(region=props["region"], profile=props.get("profile"))
    aws.must_be(props["account"])
    return aws


def _say(line: str) -> None:
    # Pulumi shows each line of this process's output among the messages of the stack.
    print(line, flush=True)
