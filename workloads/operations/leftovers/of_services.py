"""What of a stack is outside EC2: each service asked in its own way, and the tag index for what nobody thought of."""

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from workloads.operations.leftovers import karpenters, of_ec2
from workloads.operations.leftovers.aws import Aws, code_of, tags_of, unless
from workloads.operations.leftovers.inventory import BUCKET, FILE_SYSTEM, Thing
from workloads.operations.leftovers.ownership import Owner, is_anothers, is_of_stack


def clusters(aws: Aws, owner: Owner) -> Iterator[Thing]:
    """The EKS cluster and its node groups, by name."""
    cluster = karpenters.cluster(aws, owner)
    if cluster is None or is_anothers(tags_of(cluster), owner):
        return
    name, tags = owner.cluster, tags_of(cluster)
    for group in aws.pages("eks", "list_nodegroups", "nodegroups", {"clusterName": name}):
        yield Thing(
            kind="node group",
            id=f"{name}/{group}",
            remove=f"aws eks delete-nodegroup --cluster-name {name} --nodegroup-name {group} {aws.options()}",
            tags=tags,
        )
    yield Thing(
        kind="EKS cluster",
        id=name,
        remove=f"aws eks delete-cluster --name {name} {aws.options()}",
        tags=tags,
        state=str(cluster["status"]),
    )


def file_systems(aws: Aws, owner: Owner) -> Iterator[Thing]:
    """FSx file systems, and backups of them."""
    for found in aws.pages("fsx", "describe_file_systems", "FileSystems"):
        if is_of_stack(tags_of(found), owner):
            yield Thing(
                kind=FILE_SYSTEM,
                id=found["FileSystemId"],
                remove=f"aws fsx delete-file-system --file-system-id {found['FileSystemId']} {aws.options()}",
                tags=tags_of(found),
                state=str(found.get("Lifecycle", "")),
            )
    for found in aws.pages("fsx", "describe_backups", "Backups"):
        tags = {**tags_of(found.get("FileSystem", {})), **tags_of(found)}
        if is_of_stack(tags, owner):
            yield Thing(
                kind="backup of a file system",
                id=found["BackupId"],
                remove=f"aws fsx delete-backup --backup-id {found['BackupId']} {aws.options()}",
                tags=tags,
                state=str(found.get("Lifecycle", "")),
            )


def buckets(aws: Aws, owner: Owner) -> Iterator[Thing]:
    """Buckets that begin as the program names them."""
    for found in aws.pages("s3", "list_buckets", "Buckets", {"Prefix": owner.names.bucket_prefix}):
        tags = _bucket_tags(aws, found["Name"])
        if is_of_stack(tags, owner):
            yield Thing(
                kind=BUCKET,
                id=found["Name"],
                remove=f"aws s3 rb s3://{found['Name']} --force {aws.options()}",
                tags=tags,
            )


def queues(aws: Aws, owner: Owner) -> Iterator[Thing]:
    """Karpenter's interruption queue."""
    with unless("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"):
        url = aws.client("sqs").get_queue_url(QueueName=owner.names.base)["QueueUrl"]
        tags = aws.client("sqs").list_queue_tags(QueueUrl=url).get("Tags", {})
        if not is_anothers(tags, owner):
            yield Thing(
                kind="queue",
                id=owner.names.base,
                remove=f"aws sqs delete-queue --queue-url {url} {aws.options()}",
                tags=tags,
            )


def rules(aws: Aws, owner: Owner) -> Iterator[Thing]:
    """EventBridge rules that feed the queue."""
    for found in aws.pages("events", "list_rules", "Rules", {"NamePrefix": f"{owner.names.base}-"}):
        tags = tags_of(aws.client("events").list_tags_for_resource(ResourceARN=found["Arn"]))
        if is_of_stack(tags, owner):
            yield Thing(
                kind="event rule",
                id=found["Name"],
                remove=f"aws events remove-targets --rule {found['Name']} --ids karpenter {aws.options()} && "
                f"aws events delete-rule --name {found['Name']} {aws.options()}",
                tags=tags,
            )


def log_groups(aws: Aws, owner: Owner) -> Iterator[Thing]:
    """The control plane's log group, which EKS makes without a tag."""
    name = f"/aws/eks/{owner.cluster}/cluster"
    for found in aws.pages("logs", "describe_log_groups", "logGroups", {"logGroupNamePrefix": name}):
        if found["logGroupName"] == name:
            yield Thing(
                kind="log group",
                id=name,
                remove=f"aws logs delete-log-group --log-group-name {name} {aws.options()}",
                tags={},
            )


def roles(aws: Aws, owner: Owner) -> Iterator[Thing]:
    """IAM roles: of all of the account's, because pulumi-eks names one itself. A listing of roles has no tags."""
    details = aws.pages("iam", "get_account_authorization_details", "RoleDetailList", {"Filter": ["Role"]})
    for found in details:
        if is_of_stack(tags_of(found), owner):
            yield Thing(
                kind="IAM role",
                id=found["RoleName"],
                remove=f"aws iam delete-role --role-name {found['RoleName']} {aws.options()}",
                tags=tags_of(found),
                state="detach its policies first" if found.get("AttachedManagedPolicies") else "",
            )


def policies(aws: Aws, owner: Owner) -> Iterator[Thing]:
    """IAM policies by name, and by tag then, because a name may begin like another's."""
    for found in aws.pages("iam", "list_policies", "Policies", {"Scope": "Local"}):
        if not found["PolicyName"].startswith(f"{owner.names.base}-"):
            continue
        tags = tags_of(aws.client("iam").list_policy_tags(PolicyArn=found["Arn"]))
        if is_of_stack(tags, owner):
            yield Thing(
                kind="IAM policy",
                id=found["PolicyName"],
                remove=f"aws iam delete-policy --policy-arn {found['Arn']} {aws.options()}",
                tags=tags,
            )


def instance_profiles(aws: Aws, owner: Owner) -> Iterator[Thing]:
    """The program's instance profile, and those under Karpenter's path."""
    name = owner.names.of("gpu-node")
    with unless("NoSuchEntity"):
        found = aws.client("iam").get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
        if not is_anothers(tags_of(found), owner):
            yield _profile(aws, found, sweepable=False)
    for made in karpenters.instance_profiles(aws, owner):
        yield _profile(aws, made, sweepable=True)


def tagged(aws: Aws, owner: Owner) -> Iterator[Thing]:
    """Whatever else the tag index knows: load balancers of a Service, and kinds that nobody thought of."""
    seen: set[str] = set()
    for query in _queries(owner):
        for found in aws.pages("resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", query):
            arn, tags = found["ResourceARN"], tags_of(found)
            if arn not in seen and not _is_asked_for(arn) and not is_anothers(tags, owner):
                seen.add(arn)
                yield Thing(
                    kind=_kind(arn),
                    id=arn,
                    remove=_removal(arn, aws),
                    tags=tags,
                    state="by the tag index, which may be minutes late",
                )


_ASKED_FOR = {
    "ec2": {*(kind.arn for kind in of_ec2.KINDS), of_ec2.INTERFACE_ARN},
    # Rules of a group, ENIs of a fleet and the like go with what they belong to; so do a cluster's own parts.
    "eks": {"cluster", "nodegroup", "addon", "podidentityassociation", "access-entry"},
    "iam": {"role", "policy", "instance-profile"},
    "fsx": {"file-system", "backup"},
    "events": {"rule"},
    "logs": {"log-group"},
}
_WHOLE_SERVICES = frozenset({"s3", "sqs"})


def _is_asked_for(arn: str) -> bool:
    """Another finder asks the service itself, whose answer is the newer one."""
    service, kind = _service_and_type(arn)
    return service in _WHOLE_SERVICES or kind in _ASKED_FOR.get(service, ())


def _service_and_type(arn: str) -> tuple[str, str]:
    # arn:partition:service:region:account:type/id or type:id
    parts = arn.split(":", 5)
    return parts[2], parts[5].replace(":", "/").split("/", 1)[0]


def _kind(arn: str) -> str:
    service, kind = _service_and_type(arn)
    return "load balancer" if (service, kind) == ("elasticloadbalancing", "loadbalancer") else f"{service} {kind}"


def _removal(arn: str, aws: Aws) -> str:
    if _kind(arn) != "load balancer":
        return f"the console of {_service_and_type(arn)[0]}: no command is known here"
    rest = arn.split(":", 5)[5].split("/")
    # loadbalancer/NAME is a classic one; loadbalancer/(app|net)/NAME/ID has its ARN for a name.
    if len(rest) == 2:
        return f"aws elb delete-load-balancer --load-balancer-name {rest[1]} {aws.options()}"
    return f"aws elbv2 delete-load-balancer --load-balancer-arn {arn} {aws.options()}"


def _queries(owner: Owner) -> list[dict[str, Any]]:
    own = [{"Key": key, "Values": [value]} for key, value in owner.names.tags.items()]
    in_tree = [{"Key": owner.cluster_key, "Values": ["owned"]}]
    controller = [{"Key": "elbv2.k8s.aws/cluster", "Values": [owner.cluster]}]
    return [{"TagFilters": filters} for filters in (own, in_tree, controller)]


def _bucket_tags(aws: Aws, bucket: str) -> dict[str, str]:
    try:
        return tags_of(aws.client("s3").get_bucket_tagging(Bucket=bucket))
    except ClientError as error:
        if code_of(error) in ("NoSuchTagSet", "NoSuchBucket"):
            return {}
        raise


def _profile(aws: Aws, found: dict[str, Any], *, sweepable: bool) -> Thing:
    name = found["InstanceProfileName"]
    return Thing(
        kind="instance profile",
        id=name,
        remove=f"aws iam delete-instance-profile --instance-profile-name {name} {aws.options()}",
        tags=tags_of(found),
        state="remove its role first" if found.get("Roles") else "",
        sweepable=sweepable,
    )
