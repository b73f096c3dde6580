"""Which TrainJob a stack's is."""

from workloads.cli.arms import planned
from workloads.cli.stack_outputs import stack_outputs
from workloads.planning.plan import NAMESPACE


def job_of(stack: str) -> tuple[str, str]:
    """Namespace and name of the TrainJob of a stack file, or of a stack by name, of which Pulumi is asked."""
    if stack.endswith((".yaml", ".yml")):
        return NAMESPACE, planned(stack).job_name
    outputs = stack_outputs(stack)
    namespace, job = outputs.get("namespace"), outputs.get("trainJob")
    if not isinstance(namespace, str) or not isinstance(job, str):
        raise ValueError(
            f"{stack}: the stack has no TrainJob yet; run `pulumi up`, or give its file Pulumi.{stack}.yaml"
        )
    return namespace, job
