"""What is checked: one stack's plan, and where it would stand."""

from dataclasses import dataclass
from datetime import datetime

from workloads.catalogue.instances import InstanceType
from workloads.catalogue.versions import CHARTS, Chart
from workloads.operations.leftovers.ownership import Owner
from workloads.planning.plan import Plan
from workloads.planning.spec import Platform


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A stack before it is made. `profile`: of the AWS configuration, or the ambient credentials."""

    owner: Owner
    plan: Plan
    profile: str | None
    now: datetime
    """UTC."""
    charts: tuple[Chart, ...] = CHARTS

    @property
    def platform(self) -> Platform:
        """What the stack file says of where it runs."""
        return self.plan.platform

    @property
    def zone(self) -> str:
        """Where its GPU nodes stand."""
        assert self.platform.zone is not None, "the plan refuses EC2 without a zone"
        return self.platform.zone

    @property
    def instance_type(self) -> InstanceType:
        """Of its GPU nodes."""
        found = self.plan.topology.machine.instance_type
        assert found is not None, "a local machine's stack has no preflight"
        return found
