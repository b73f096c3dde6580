"""Sweeping: what nobody else can want is ended, deleted and waited for, or named where it can't be."""

from collections.abc import Callable, Mapping, Sequence

from botocore.exceptions import ClientError

from workloads.operations.leftovers import karpenters
from workloads.operations.leftovers.aws import Aws, RefusedError, code_of, sentences, unless
from workloads.operations.leftovers.karpenters import Thing, holder_of
from workloads.operations.leftovers.node_claims import NoAnswerError
from workloads.operations.leftovers.ownership import Owner
from workloads.operations.leftovers.patience import Patience

_SILENCE_S = 30.0
"""An API server that is replaced is away for seconds; one that is silent for longer is gone."""
_ENDING = frozenset({"shutting-down", "terminated"})

AskClaims = Callable[[], Sequence[str]]
"""NodeClaims in words; NoAnswerError where the cluster doesn't say."""


class LeftoverError(ValueError):
    """Something is still there when the limit is spent; the message names it and says what to do."""


def await_no_claims(ask: AskClaims, owner: Owner, patience: Patience, *, give_up_cluster: bool) -> None:
    """Wait until Karpenter wants no node any more. LeftoverError where some remain, or where the cluster is silent.

    `give_up_cluster`: a silent cluster is passed over, and what it made is told by tag alone.
    """
    try:
        remaining = patience.until_none(_patient(ask, patience), "NodeClaims to go")
    except NoAnswerError as silence:
        if not give_up_cluster:
            raise LeftoverError(_SILENT.format(cluster=owner.cluster, reason=silence, stack=owner.stack)) from silence
        patience.say(f"cluster {owner.cluster} doesn't answer ({silence}): its nodes are ended by tag alone")
        return
    if remaining:
        raise LeftoverError(
            f"NodeClaims are left in cluster {owner.cluster} after {patience.spent_s:.0f} s: {', '.join(remaining)}; "
            "`kubectl describe nodeclaim` says what holds them, a NodePool of your own is yours to delete; then "
            "`pulumi destroy` again"
        )


_SILENT = (
    "cluster {cluster} doesn't answer ({reason}), so nobody knows whether Karpenter drained its nodes. Mend the access "
    "and destroy again; or give the cluster up: "
    "`PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy --refresh --stack {stack}` "
    "forgets what is inside and ends its instances by tag, and `./topo verify-destroyed {stack}` proves the outcome"
)


def end_nodes(aws: Aws, owner: Owner, patience: Patience) -> None:
    """Terminate Karpenter's instances and wait; then delete their volumes, templates and profiles."""
    with sentences(f"instances of cluster {owner.cluster}"):
        stuck: dict[str, str] = {}
        remaining = patience.until_none(lambda: _end_instances(aws, owner, patience, stuck), "instances to end")
    if remaining:
        raise _nodes_left(aws, remaining, stuck, patience)
    with sentences(f"volumes of cluster {owner.cluster}"):
        for volume in karpenters.volumes(aws, owner):
            patience.say(f"deleting volume {volume['VolumeId']}, which its instance left")
            with unless("InvalidVolume.NotFound", "VolumeInUse"):
                aws.client("ec2").delete_volume(VolumeId=volume["VolumeId"])
    with sentences(f"launch templates of cluster {owner.cluster}"):
        for template in karpenters.launch_templates(aws, owner):
            patience.say(f"deleting launch template {template['LaunchTemplateName']}")
            with unless("InvalidLaunchTemplateId.NotFound"):
                aws.client("ec2").delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])
    with sentences(f"instance profiles of cluster {owner.cluster}"):
        for profile in karpenters.instance_profiles(aws, owner):
            _delete_profile(aws, profile, patience)


def free_interfaces(aws: Aws, owner: Owner, vpc_id: str, patience: Patience) -> None:
    """Delete the CNI's detached interfaces, wait for the others to be detached, then the cluster's own group."""
    with sentences(f"interfaces in {vpc_id}"):
        remaining = patience.until_none(
            lambda: _delete_interfaces(aws, owner, vpc_id, patience), "interfaces to be detached"
        )
    if remaining:
        raise LeftoverError(
            f"interfaces hold subnets of {vpc_id} after {patience.spent_s:.0f} s: {', '.join(remaining)}; end what "
            "they hang on, then `pulumi destroy` again"
        )
    with sentences(f"security groups in {vpc_id}"):
        for group in karpenters.cluster_groups(aws, owner, [vpc_id]):
            patience.say(f"deleting security group {group['GroupName']}, which EKS left")
            with unless("InvalidGroup.NotFound"):
                aws.client("ec2").delete_security_group(GroupId=group["GroupId"])


def end_orphans(aws: Aws, owner: Owner, patience: Patience) -> None:
    """End nodes of a cluster that is gone. One of its name that is there may be a newer one, or another project's."""
    with sentences(f"cluster {owner.cluster}"):
        there = karpenters.cluster(aws, owner) is not None
    if there:
        patience.say(f"cluster {owner.cluster} is there: nodes that bear its name stay")
    else:
        end_nodes(aws, owner, patience)


def sweep(aws: Aws, owner: Owner, patience: Patience) -> None:
    """What both guards would have done: nodes, then interfaces in the stack's VPCs. RefusedError while a cluster is."""
    with sentences(f"cluster {owner.cluster}"):
        if karpenters.cluster(aws, owner) is not None:
            raise RefusedError(
                f"cluster {owner.cluster} is there, so its nodes may be in use; `pulumi destroy --stack {owner.stack}` "
                "first, with PULUMI_K8S_DELETE_UNREACHABLE=true and --refresh if it doesn't answer any more"
            )
    end_nodes(aws, owner, patience)
    with sentences("VPCs"):
        vpcs = list(karpenters.vpc_ids(aws, owner))
    for vpc_id in vpcs:
        free_interfaces(aws, owner, vpc_id, patience)


def _patient(ask: AskClaims, patience: Patience) -> AskClaims:
    """Asks again through a short silence, as if something remained."""
    silent_since: list[float] = []

    def asked() -> Sequence[str]:
        try:
            answer = ask()
        except NoAnswerError as silence:
            silent_since.append(patience.spent_s)
            if patience.spent_s - silent_since[0] >= min(_SILENCE_S, patience.limit_s):
                raise
            return [f"no answer ({silence})"]
        silent_since.clear()
        return answer

    return asked


def _end_instances(aws: Aws, owner: Owner, patience: Patience, stuck: dict[str, str]) -> list[str]:
    """One look: what isn't ending is told to, again where Karpenter, still alive, has launched more."""
    found = list(karpenters.instances(aws, owner))
    for instance in found:
        name = instance["InstanceId"]
        if instance["State"]["Name"] not in _ENDING and name not in stuck:
            patience.say(f"terminating {_described(instance)}, which Karpenter made and nobody owns any more")
            _terminate(aws, name, stuck)
    remaining = [_described(instance) for instance in found]
    if found and all(instance["InstanceId"] in stuck for instance in found):
        raise _nodes_left(aws, remaining, stuck, patience)
    return remaining


def _nodes_left(aws: Aws, remaining: Sequence[str], stuck: Mapping[str, str], patience: Patience) -> LeftoverError:
    why = "".join(f"; {name}: {reason}" for name, reason in stuck.items())
    names = " ".join(one.split(" ", maxsplit=1)[0] for one in remaining)
    return LeftoverError(
        f"instances are left after {patience.spent_s:.0f} s and cost money: {', '.join(remaining)}{why}; end them with "
        f"`aws ec2 terminate-instances {aws.options()} --instance-ids {names}`, then `pulumi destroy` again"
    )


def _terminate(aws: Aws, instance: str, stuck: dict[str, str]) -> None:
    try:
        aws.client("ec2").terminate_instances(InstanceIds=[instance])
    except ClientError as error:
        # Protected against termination: no other error of this call is about the one instance.
        if code_of(error) == "OperationNotPermitted":
            stuck[instance] = str(error.response["Error"]["Message"])
        elif code_of(error) != "InvalidInstanceID.NotFound":
            raise


def _described(instance: Thing) -> str:
    return f"{instance['InstanceId']} ({instance['InstanceType']}, {instance['State']['Name']})"


def _delete_profile(aws: Aws, profile: Thing, patience: Patience) -> None:
    name, iam = profile["InstanceProfileName"], aws.client("iam")
    patience.say(f"deleting instance profile {name}")
    with unless("NoSuchEntity"):
        for role in profile["Roles"]:
            iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role["RoleName"])
        iam.delete_instance_profile(InstanceProfileName=name)


def _delete_interfaces(aws: Aws, owner: Owner, vpc_id: str, patience: Patience) -> list[str]:
    """One look: what is detached is deleted, what isn't is waited for."""
    attached = []
    for interface in karpenters.interfaces(aws, owner, [vpc_id]):
        name = interface["NetworkInterfaceId"]
        if interface["Status"] == "available":
            patience.say(f"deleting interface {name}, which the CNI left")
            # In use: it was attached since the listing, and the next look waits for it.
            with unless("InvalidNetworkInterfaceID.NotFound", "InvalidNetworkInterface.InUse"):
                aws.client("ec2").delete_network_interface(NetworkInterfaceId=name)
        else:
            attached.append(f"{name} ({interface['Status']} by {holder_of(interface)})")
    return attached
